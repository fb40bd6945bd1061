// The CUDA runtime: streams, events, captures and graphs.
#include "record/card/device/cuda_errors.h"
#include "record/card/device/device.h"
#include "record/card/device/entry.h"
#include "record/card/hooks/pinned_hook.h"

namespace memreplay::card {
namespace {

DOES_LOCKED(cudaStreamCreateWithPriority, (void** out, unsigned, int priority),
            *out = Pointer(d.streams.Create(CurrentCard(), priority,
                                            d.settings.simulated ? 1 : 16)))
ENTRY(int, cudaStreamCreate, void** out) { return cudaStreamCreateWithPriority(out, 0, 0); }
ENTRY(int, cudaStreamCreateWithFlags, void** out, unsigned) {
  return cudaStreamCreateWithPriority(out, 0, 0);
}
DOES_LOCKED(cudaStreamDestroy, (void* stream), d.streams.Destroy(StreamKeyOf(stream)))
DOES_LOCKED(cudaStreamGetPriority, (void* stream, int* priority),
            *priority = d.streams.PriorityOf(StreamKeyOf(stream)))
// No stream waits for the default one, like all of torch's.
DOES(cudaStreamGetFlags, (void*, unsigned* flags), *flags = 1)
DOES(cudaStreamGetId, (void* stream, unsigned long long* id), *id = Number(stream))
ENTRY(int, cudaStreamQuery, void* stream) {
  const auto [d, lock] = LockedDevice();
  return d.streams.Poll(StreamKeyOf(stream), d.now()) ? kSuccess : Failed(kNotReady);
}
ENTRY(int, cudaStreamSynchronize, void* stream) {
  const auto [d, lock] = LockedDevice();
  if (d.streams.CaptureOf(StreamKeyOf(stream)) != 0) return Failed(kCaptureUnsupported);
  d.streams.Synchronize(StreamKeyOf(stream), d.now());
  return kSuccess;
}
DOES_LOCKED(cudaStreamWaitEvent, (void* stream, const Event* event, unsigned),
            d.streams.WaitFor(StreamKeyOf(stream), *event, d.Tick()))
DOES(cudaStreamAddCallback,
     (void* stream, void (*function)(void*, int, void*), void* data, unsigned),
     function(stream, kSuccess, data))
DOES(cudaLaunchHostFunc, (void*, void (*function)(void*), void* data), function(data))

DOES(cudaEventCreateWithFlags, (Event * *out, unsigned), *out = new Event)
ENTRY(int, cudaEventCreate, Event** out) { return cudaEventCreateWithFlags(out, 0); }
DOES(cudaEventDestroy, (Event * event), delete event)
ENTRY(int, cudaEventRecord, Event* event, void* stream) {
  const auto [d, lock] = LockedDevice();
  d.streams.Record(event, StreamKeyOf(stream), d.Tick());
  if (PinnedFree() != 0) d.pinned.Recorded(PinnedFree(), event);
  return kSuccess;
}
ENTRY(int, cudaEventRecordWithFlags, Event* event, void* stream, unsigned) {
  return cudaEventRecord(event, stream);
}
ENTRY(int, cudaEventQuery, const Event* event) {
  const auto [d, lock] = LockedDevice();
  if (d.streams.completion() == Streams::Completion::kAtOnce && !d.settings.simulated &&
      !d.streams.IsCompleteIfLagging(*event, d.now())) {
    Assume("work was complete when it was queried; with --completion lagging it would still run");
  }
  if (!d.streams.Poll(*event, d.now())) return Failed(kNotReady);
  d.pinned.Done(event);
  return kSuccess;
}
DOES_LOCKED(cudaEventSynchronize, (const Event* event), d.streams.Synchronize(*event))
ENTRY(int, cudaEventElapsedTime, float* milliseconds, const Event* start, const Event* end) {
  // Triton repeats a measurement for 125 ms by this clock.
  Assume("a launch is assumed to take a millisecond where the script measures GPU time");
  *milliseconds = static_cast<float>(end->time - start->time);
  return kSuccess;
}
ALSO(cudaEventElapsedTime_v2, cudaEventElapsedTime);

// Captures. A graph is the number of its capture; it holds no work, since there is none to repeat.
ENTRY(int, cudaStreamBeginCapture, void* stream, int) {
  const auto [d, lock] = LockedDevice();
  d.streams.BeginCapture(StreamKeyOf(stream));
  d.any_capture.store(true, std::memory_order_relaxed);
  return kSuccess;
}
ENTRY(int, cudaStreamBeginCaptureToGraph, void* stream, void*, const void*, const void*, size_t,
      int) {
  return cudaStreamBeginCapture(stream, 0);
}
ENTRY(int, cudaStreamEndCapture, void* stream, void** graph) {
  const auto [d, lock] = LockedDevice();
  const uint64_t capture = d.streams.EndCapture(StreamKeyOf(stream));
  d.any_capture.store(d.streams.capturing() || d.all_captured, std::memory_order_relaxed);
  *graph = Pointer(capture * 16);
  d.graph_launches[capture * 16] = d.captured_launches.exchange(0, std::memory_order_relaxed);
  return capture != 0 ? kSuccess : Failed(kInvalidValue);
}
ENTRY(int, cudaStreamIsCapturing, void* stream, int* status) {
  Device& d = TheDevice();
  if (!d.any_capture.load(std::memory_order_relaxed)) {
    *status = 0;
    return kSuccess;
  }
  const std::lock_guard<std::mutex> lock(d.mutex);
  *status = d.all_captured || d.streams.CaptureOf(StreamKeyOf(stream)) != 0 ? 1 : 0;
  return kSuccess;
}
ALSO(cuStreamIsCapturing, cudaStreamIsCapturing);

int CaptureInfo(void* stream, int* status, unsigned long long* id, void** graph,
                const void** dependencies, const void** edges, size_t* count) {
  const auto [d, lock] = LockedDevice();
  const uint64_t capture = d.all_captured ? 1 : d.streams.CaptureOf(StreamKeyOf(stream));
  *status = capture != 0 ? 1 : 0;
  if (capture == 0) return kSuccess;
  if (id != nullptr) *id = capture;
  if (graph != nullptr) *graph = Pointer(capture * 16);
  if (dependencies != nullptr) *dependencies = nullptr;
  if (edges != nullptr) *edges = nullptr;
  if (count != nullptr) *count = 0;
  return kSuccess;
}
ENTRY(int, cudaStreamGetCaptureInfo, void* stream, int* status, MayBeNull<unsigned long long> id) {
  return CaptureInfo(stream, status, id, nullptr, nullptr, nullptr, nullptr);
}
ENTRY(int, cudaStreamGetCaptureInfo_v2, void* stream, int* status, MayBeNull<unsigned long long> id,
      MayBeNull<void*> graph, MayBeNull<const void*> dependencies, MayBeNull<size_t> count) {
  return CaptureInfo(stream, status, id, graph, dependencies, nullptr, count);
}
ENTRY(int, cudaStreamGetCaptureInfo_v3, void* stream, int* status, MayBeNull<unsigned long long> id,
      MayBeNull<void*> graph, MayBeNull<const void*> dependencies, MayBeNull<const void*> edges,
      MayBeNull<size_t> count) {
  return CaptureInfo(stream, status, id, graph, dependencies, edges, count);
}
ENTRY_FROM(13000, "cudaStreamGetCaptureInfo", int, capture_info_of_13, void* stream, int* status,
           MayBeNull<unsigned long long> id, MayBeNull<void*> graph,
           MayBeNull<const void*> dependencies, MayBeNull<const void*> edges,
           MayBeNull<size_t> count) {
  return CaptureInfo(stream, status, id, graph, dependencies, edges, count);
}
ENTRY(int, cudaStreamUpdateCaptureDependencies, void) { return kSuccess; }
ALSO(cudaStreamUpdateCaptureDependencies_v2, cudaStreamUpdateCaptureDependencies);
ENTRY(int, cudaThreadExchangeStreamCaptureMode, int* mode) {
  thread_local int current = 0;
  const int before = current;
  current = *mode;
  *mode = before;
  return kSuccess;
}

DOES(cudaGraphCreate, (void** graph, unsigned), *graph = Pointer(0xfff0))
ENTRY(int, cudaGraphInstantiate, void** executable, void* graph) {
  const void* caller = __builtin_return_address(0);
  const auto [d, lock] = LockedDevice();
  const uint64_t handle = 16 * ++d.executable_graphs;
  const auto launches = d.graph_launches.find(Number(graph));
  d.outside.Made(kGraphObject, caller, CurrentCard(), handle);
  d.outside.Made(kGraphLaunchObject, caller, CurrentCard(), handle,
                 launches == d.graph_launches.end() ? 0 : launches->second);
  *executable = Pointer(handle);
  return kSuccess;
}
ALSO(cudaGraphInstantiateWithFlags, cudaGraphInstantiate);
DOES(cudaGraphLaunch, (void*, void*), TheDevice().Launch())
ENTRY(int, cudaGraphUpload, void*, void*) { return kSuccess; }
ENTRY(int, cudaGraphDestroy, void*) { return kSuccess; }
ENTRY(int, cudaGraphExecDestroy, void* executable) {
  TheDevice().Destroyed(kGraphObject, executable);
  TheDevice().Destroyed(kGraphLaunchObject, executable);
  return kSuccess;
}
ENTRY(int, cudaGraphDebugDotPrint, void*, const char*, unsigned) { return kSuccess; }
// PyTorch only checks whether there are any.
DOES(cudaGraphGetNodes, (void*, void*, size_t* count), *count = 1)
DOES(cudaGraphAddEmptyNode, (void** node), *node = Pointer(16))
DOES(cudaGraphNodeGetDependencies, (void*, void*, size_t* count), *count = 0)
ENTRY_FROM(13000, "cudaGraphNodeGetDependencies", int, dependencies_of_13, void*, void*, void*,
           size_t* count) {
  *count = 0;
  return kSuccess;
}
ENTRY(int, cudaGraphRetainUserObject, void*, void*, unsigned, unsigned) { return kSuccess; }
DOES(cudaUserObjectCreate, (void** object, void*, void*, unsigned, unsigned), *object = Pointer(16))
ENTRY(int, cudaUserObjectRelease, void*, unsigned) { return kSuccess; }
// The nodes of a graph allocate nothing.
DOES(cudaDeviceGetGraphMemAttribute, (int, int, uint64_t* value), *value = 0)
ENTRY(int, cudaDeviceSetGraphMemAttribute, int, int, const void*) { return kSuccess; }

}  // namespace
}  // namespace memreplay::card
