#include "tests/trace/support/sample_snapshot.h"

namespace memreplay {
namespace {

constexpr int64_t kBase = static_cast<int64_t>(kSampleAddress);
constexpr int64_t kSecond = 1700000000000000;

Py Frame(const char* name, int line) {
  return Py::Dict({{"name", name}, {"filename", "train.py"}, {"line", line}});
}
Py Frames() { return Py::List({Frame("forward", 12), Frame("main", 40)}); }

Py Block(Release release, int64_t offset, int64_t size, int64_t requested, const char* state,
         bool live) {
  Py block = Py::Dict({});
  if (release >= Release::k21) block["address"] = kBase + offset;
  block["size"] = size;
  block["requested_size"] = requested;
  block["state"] = state;
  if (release >= Release::k21) {
    block["frames"] = live ? Frames() : Py::List({});
  } else if (live) {
    block["history"] = Py::List(
        {Py::Dict({{"addr", kBase + offset}, {"real_size", requested}, {"frames", Frames()}})});
  }
  return block;
}

Py Entry(Release release, const char* action, const char* address_key, int64_t address,
         int64_t size, int64_t stream, bool frames = true) {
  Py entry =
      Py::Dict({{"action", action}, {address_key, address}, {"size", size}, {"stream", stream}});
  if (release >= Release::k22) entry["time_us"] = kSecond + size;
  if (release >= Release::k28) entry["compile_context"] = "N/A";
  if (release >= Release::k210) entry["user_metadata"] = "";
  if (release >= Release::k213) entry["pool_id"] = Py::Tuple({0, 0});
  if (frames && release >= Release::k21) entry["frames"] = Frames();
  return entry;
}

Py Settings(Release release) {
  Py settings = Py::Dict({{"PYTORCH_CUDA_ALLOC_CONF", "max_split_size_mb:128"},
                          {"max_split_size", 134217728},
                          {"garbage_collection_threshold", 0.5},
                          {"expandable_segments", false},
                          {"pinned_num_register_threads", 1},
                          {"release_lock_on_cudamalloc", false},
                          {"pinned_use_cuda_host_register", false},
                          {"roundup_power2_divisions", Py::Dict({{"1", 0}, {"2", 4}})}});
  if (release >= Release::k29) settings["graph_capture_record_stream_reuse"] = true;
  return settings;
}

}  // namespace

Py SampleSnapshot(Release release) {
  Py segment = Py::Dict({{"device", 0},
                         {"address", kBase},
                         {"total_size", 2097152},
                         {"allocated_size", 512},
                         {"active_size", 1536},
                         {"requested_size", 1300},
                         {"stream", 0},
                         {"segment_type", "small"}});
  if (release >= Release::k21) {
    segment["segment_pool_id"] = Py::Tuple({0, 0});
    segment["is_expandable"] = false;
  }
  segment["blocks"] = Py::List({Block(release, 0, 512, 300, "active_allocated", true),
                                Block(release, 512, 1024, 1000, "active_pending_free", true),
                                Block(release, 1536, 2097152 - 1536, 0, "inactive", false)});
  if (release >= Release::k21) segment["frames"] = Frames();
  Py trace = Py::List({
      Entry(release, "segment_alloc", "addr", kBase, 2097152, 0),
      Entry(release, "alloc", "addr", kBase, 300, 0),
      Entry(release, "alloc", "addr", kBase + 512, 1000, 0),
      Entry(release, "free_requested", "addr", kBase + 512, 1000, 0),
      Entry(release, "oom", "device_free", int64_t{1} << 30, int64_t{1} << 32, 0x5500),
      Entry(release, "snapshot", "addr", 0, 1536, 0, false),
  });
  Py snapshot = Py::Dict(
      {{"segments", Py::List({segment})}, {"device_traces", Py::List({trace, Py::List({})})}});
  if (release >= Release::k23) snapshot["allocator_settings"] = Settings(release);
  if (release >= Release::k25) {
    snapshot["external_annotations"] = Py::List(
        {Py::Dict({{"name", "step"}, {"stage", "START"}, {"device", 0}, {"time_us", kSecond}})});
  }
  return snapshot;
}

}  // namespace memreplay
