// PYTORCH_CUDA_ALLOC_CONF, parsed into values. Source: docs/fidelity.md.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "sim/settings/torch_profile.h"
#include "trace/value/units.h"

namespace memreplay {

inline constexpr Bytes kUnlimited{~uint64_t{0}};

enum class Backend : uint8_t { kNative, kCudaMallocAsync };

// How much address space an expandable segment reserves: a share of the device's memory, or bytes.
// If both are 0, it is the default, 9/8 of that memory, which is also the maximum.
struct ExpandableReserve {
  double share = 0;
  Bytes bytes;
  friend bool operator==(const ExpandableReserve&, const ExpandableReserve&) = default;
};

// PYTORCH_CUDA_ALLOC_CONF, parsed, as one release understands it.
struct AllocatorConfig {
  std::string conf;  // the last string parsed, unchanged
  Backend backend = Backend::kNative;
  bool backend_loaded = false;  // a string was parsed, so the backend is fixed
  Bytes max_split_size = kUnlimited;
  Bytes max_non_split_rounding = MiB(20);
  double garbage_collection_threshold = 0;                 // 0 is off
  std::array<uint64_t, 16> roundup_power2_divisions = {};  // index k: [2^(20+k), 2^(21+k))
  bool expandable_segments = false;
  bool release_lock_on_cudamalloc = false;
  bool graph_capture_record_stream_reuse = false;
  double per_process_memory_fraction = 1.0;
  Bytes large_segment_size = MiB(20);
  bool throw_on_cudamalloc_oom = false;
  ExpandableReserve expandable_segments_reserve;
  friend bool operator==(const AllocatorConfig&, const AllocatorConfig&) = default;
};

// Parses `conf` over `config` with that release's grammar, reset rules and errors. Keys are applied
// left to right; on an error the earlier ones stay. The first string that a config parses is the
// environment's: it chooses the backend, which later strings may name but not change. Keys of the
// host (pinned) memory allocator are checked and change nothing here.
// Errors: InvalidArgument with the meaning of that release's exception, or with the remark that
// this release reads past the end of the string (undefined behaviour). Warnings (ignored keys and
// values) are appended to `warnings` unless it is null.
absl::Status ParseAllocatorConf(std::string_view conf, const TorchProfile& profile,
                                AllocatorConfig* config,
                                std::vector<std::string>* warnings = nullptr);

}  // namespace memreplay
