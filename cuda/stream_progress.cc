#include "cuda/stream_progress.h"

#include <algorithm>

#include "trace/value/strings.h"

namespace memreplay {
namespace {

// The maximum number of events of one stream that nothing has waited for. Beyond it, the oldest are
// waited for and reused.
constexpr size_t kMaxPending = 1024;

}  // namespace

StreamProgress::~StreamProgress() {
  for (const Stream& stream : streams_) {
    for (const Pending& pending : stream.pending) context_.api().cuEventDestroy(pending.event);
  }
  for (CUevent event : spare_) context_.api().cuEventDestroy(event);
}

StreamProgress::Stream& StreamProgress::At(uint32_t stream) {
  if (stream >= streams_.size()) streams_.resize(stream + 1);
  return streams_[stream];
}

StreamEvent StreamProgress::Record(uint32_t index) {
  Stream& stream = At(index);
  const StreamEvent recorded = {.stream = index, .ticket = ++stream.recorded};
  CUstream const work = context_.Stream(index);
  if (work == nullptr) return recorded;
  if (stream.pending.size() >= kMaxPending) {
    WaitFor(stream, stream.pending[kMaxPending / 2].ticket);
  }
  CUevent event = nullptr;
  if (!spare_.empty()) {
    event = spare_.back();
    spare_.pop_back();
  } else if (!context_.Succeeded(
                 context_.Call(DriverCall::kEventCreate, Bytes(0), context_.api().cuEventCreate,
                               &event, CU_EVENT_DISABLE_TIMING),
                 DriverCall::kEventCreate)) {
    return recorded;
  }
  if (!context_.Succeeded(context_.Call(DriverCall::kEventRecord, Bytes(0),
                                        context_.api().cuEventRecord, event, work),
                          DriverCall::kEventRecord, StrCat("on stream ", index))) {
    spare_.push_back(event);
    return recorded;
  }
  stream.pending.push_back({recorded.ticket, event});
  return recorded;
}

void StreamProgress::WaitFor(Stream& stream, uint64_t ticket) {
  if (ticket <= stream.waited) return;
  stream.waited = ticket;
  CUevent last = nullptr;
  while (!stream.pending.empty() && stream.pending.front().ticket <= ticket) {
    last = stream.pending.front().event;
    spare_.push_back(last);
    stream.pending.pop_front();
  }
  if (last == nullptr) return;
  context_.Succeeded(context_.Call(DriverCall::kEventSynchronize, Bytes(0),
                                   context_.api().cuEventSynchronize, last),
                     DriverCall::kEventSynchronize);
}

bool StreamProgress::IsComplete(const StreamEvent& event) {
  Stream& stream = At(event.stream);
  if (explicit_completion_ && event.ticket > stream.completed) return false;
  WaitFor(stream, event.ticket);
  return true;
}

void StreamProgress::Synchronize(const StreamEvent& event) {
  Stream& stream = At(event.stream);
  stream.completed = std::max(stream.completed, event.ticket);
  WaitFor(stream, event.ticket);
}

void StreamProgress::Done(uint32_t stream) { At(stream).completed = At(stream).recorded; }

}  // namespace memreplay
