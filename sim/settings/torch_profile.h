// Everything known to the model in which PyTorch's allocator differs between releases, one row per
// release. The logic reads fields; it never compares versions. docs/fidelity.md explains, under the
// topic named in brackets, the value of each field for each release, how it was proven, and what
// else differs.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "sim/settings/conf_tokens.h"

namespace memreplay {

// A set of keys of PYTORCH_CUDA_ALLOC_CONF.
class ConfKeySet {
 public:
  constexpr bool Has(ConfKey key) const { return (bits_ >> static_cast<int>(key) & 1) != 0; }
  constexpr void Add(std::initializer_list<ConfKey> keys) {
    for (ConfKey key : keys) bits_ |= uint32_t{1} << static_cast<int>(key);
  }

 private:
  uint32_t bits_ = 0;
};

// When malloc uses pools that may serve requests of the default pools. [use-on-oom]
enum class UseOnOom : uint8_t { kNone, kLast, kBeforeRelease };

// What empty_cache() does while a MemPool is being filled. In a graph capture kAsIfNotInPool is
// kFreeablePools. [flush]
enum class EmptyCacheInPool : uint8_t {
  kAsserts,        // counts a synchronisation, then throws; releases nothing
  kFreeablePools,  // leaves the default pools, releases freeable private pools
  kAsIfNotInPool,  // releases the default pools too
};

// Which of several free blocks of one stream and size is taken (and released) first. [free-order]
enum class FreeTie : uint8_t {
  kAddress,     // the lowest address
  kBlockAge,    // the oldest Block object; the remainder of a split keeps the old one
  kSegmentAge,  // the oldest segment, then the lowest address
};

// What a snapshot of this release contains. [snapshot]
struct SnapshotLayout {
  bool block_history = false;    // blocks list their history ...
  bool block_addresses = false;  // ... or their address and frames
  bool is_expandable = false;    // key of segments
  bool time_us = false;          // keys of trace entries
  bool compile_context = false;
  bool user_metadata = false;
  bool pool_id = false;
  bool allocator_settings = false;  // top-level keys
  bool external_annotations = false;
  bool graph_capture_record_stream_reuse = false;  // key of allocator_settings
};

// What distinguishes a release of PyTorch from others.
struct TorchProfile {
  std::string_view release;  // "2.11"

  // --- Settings [settings] ---
  // The environment variables that are read. The first set one wins, even if it is empty. Unused
  // entries at the end are "".
  std::array<std::string_view, 3> conf_variables = {"PYTORCH_CUDA_ALLOC_CONF", "", ""};
  ConfKeySet conf_keys;  // those this release knows
  // Whether the parser that all accelerators share runs first, then CUDA's. If so, every isspace
  // character is removed (else only ' '), separators are not enforced, numbers are unsigned 64 bit
  // (else int), and errors are ValueError (else RuntimeError).
  bool conf_shared_parser = false;
  // Whether max_split_size_mb and max_non_split_rounding_mb may equal large_segment_size (else they
  // must exceed 20).
  bool max_split_may_equal_large_segment = false;
  bool parse_resets_max_non_split_rounding = false;  // to large_segment_size
  bool division_list_allows_zero = false;
  // Whether a list of divisions without its "]" is read past the end of the settings, which is
  // undefined behaviour (else it is an error).
  bool unclosed_list_undefined = false;
  // Whether ">:d" in a list of divisions starts after the last boundary (else at it).
  bool division_list_rest_excludes_last = false;

  // --- Sizes [sizes] ---
  bool division_one_keeps_size = false;  // divisions of 1 leave a size unrounded

  // --- Free blocks [free-order] ---
  FreeTie free_tie = FreeTie::kAddress;

  // --- Expandable segments [expandable] ---
  bool expandable_segments = false;
  // Whether private pools use them too; their segment count then goes down by one with each
  // unmapped range.
  bool private_pools_expandable = false;
  // Whether a request larger than a whole reservation still makes one (and fails later).
  bool reserves_for_oversized_request = true;
  bool gc_skips_expandable = false;
  bool release_available_skips_expandable = false;

  // --- Private pools [pools] [use-on-oom] ---
  // Whether, while several pools are being filled, the one begun last takes a request (else the one
  // begun first).
  bool newest_pool_first = false;
  bool no_split_pools = false;
  bool no_split_forgotten_at_destruction = false;
  UseOnOom use_on_oom = UseOnOom::kNone;
  // Whether, while a MemPool context is open (and not only during a graph capture), malloc polls no
  // events and does not flush, and frees with stream uses are deferred.
  bool pool_context_acts_as_capture = true;

  // --- Release of cached memory [flush] ---
  EmptyCacheInPool empty_cache_in_pool = EmptyCacheInPool::kAsserts;

  // --- Streams and events [deferred] ---
  // Whether a free deferred during a capture forgets the streams recorded during it.
  bool deferred_free_drops_capture_streams = false;

  // --- Memory fraction [fraction] ---
  bool fraction_sticky = true;  // 1.0 also sets a limit; else it removes the limit

  // --- Statistics [statistics] ---
  bool counts_sync_all_streams = false;  // num_sync_all_streams
  bool counts_device_calls = false;      // num_device_alloc, num_device_free
  bool counts_oom_rejections = false;    // num_oom_rejections
  bool reserved_bytes_by_private_pools = false;

  // --- Files [snapshot] ---
  SnapshotLayout snapshot;
};

// Returns all rows, oldest first.
absl::Span<const TorchProfile> AllTorchProfiles();
// Returns the row of "2.6", "2.6.0", "v2.6.1+cu124" or "2.6.0a0+git1234". Errors: InvalidArgument
// if it is not a version; NotFound, listing the known releases and the newest.
absl::StatusOr<const TorchProfile*> FindTorchProfile(std::string_view version);
// Returns the row used if the release is unknown: the newest, whose library agreed with the model
// on most schedules (docs/fidelity.md, "How much was compared").
const TorchProfile& DefaultTorchProfile();

}  // namespace memreplay
