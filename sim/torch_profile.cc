#include "sim/torch_profile.h"

#include <algorithm>
#include <charconv>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace memreplay {
namespace {

constexpr int kReleases = 16;
constexpr std::string_view kDefaultRelease = "2.11";

// Each release is the one before it with its changes. A line marked "assumed"
// is known only to lie between two releases; docs/fidelity.md says which.
constexpr std::array<TorchProfile, kReleases> MakeProfiles() {
  std::array<TorchProfile, kReleases> rows;
  int next = 0;
  TorchProfile p;
  auto release = [&](std::string_view name) {
    p.release = name;
    rows[next++] = p;
  };

  p.conf_keys.Add({ConfKey::kBackend, ConfKey::kMaxSplitSizeMb,
                   ConfKey::kGarbageCollectionThreshold, ConfKey::kRoundupPower2Divisions});
  p.division_one_keeps_size = true;
  p.trace_frees_need_history = true;
  p.segment_free_after_statistics = true;
  p.snapshot.block_history = true;
  release("2.0");

  p.conf_keys.Add({ConfKey::kExpandableSegments});
  p.expandable_segments = true;
  p.pool_search = PoolSearch::kStreamMap;
  p.trace_frees_need_history = false;
  p.oom_message = OomMessage::kCapacty;
  p.snapshot.block_history = false;
  p.snapshot.block_addresses = true;
  p.snapshot.is_expandable = true;
  release("2.1");

  p.conf_keys.Add({ConfKey::kReleaseLockOnCudamalloc, ConfKey::kPinnedUseCudaHostRegister,
                   ConfKey::kPinnedNumRegisterThreads});  // assumed
  p.division_list_allows_zero = true;                     // assumed
  p.pool_search = PoolSearch::kOldestFirst;               // assumed
  p.counts_sync_all_streams = true;                       // assumed
  p.counts_device_calls = true;                           // assumed
  p.segment_free_after_statistics = false;
  p.segment_release_has_stack = true;
  p.oom_message = OomMessage::kWithLimit;
  p.snapshot.time_us = true;
  release("2.2");

  p.recording_again_clears = false;
  p.snapshot.allocator_settings = true;
  release("2.3");

  p.division_one_keeps_size = false;  // assumed
  p.deferred_free_drops_capture_streams = true;
  p.oom_message = OomMessage::kWithPrivatePools;
  release("2.4");

  p.private_pools_expandable = true;
  p.gc_skips_expandable = true;
  p.release_available_skips_expandable = true;
  p.mem_pools = true;
  p.user_allocator_pools = UserAllocatorPools::kExpandable;
  p.snapshot.external_annotations = true;
  release("2.5");

  p.conf_keys.Add({ConfKey::kMaxNonSplitRoundingMb, ConfKey::kPinnedUseBackgroundThreads});
  p.flush_scope = FlushScope::kThreadPool;
  p.synchronize_of_one_pool = true;
  release("2.6");

  p.user_allocator_pools = UserAllocatorPools::kError;  // assumed
  release("2.7");

  p.use_on_oom = UseOnOom::kLast;
  p.flush_scope = FlushScope::kExplicitId;
  p.empty_cache_in_pool = EmptyCacheInPool::kFreeablePools;  // assumed
  p.snapshot.compile_context = true;
  release("2.8");

  p.conf_variables = {"PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"};  // assumed
  p.conf_keys.Add({ConfKey::kGraphCaptureRecordStreamReuse,
                   ConfKey::kPinnedReserveSegmentSizeMb});  // the second assumed
  p.conf_shared_parser = true;
  p.deferred_frees = DeferredFrees::kAddressHash;
  p.snapshot.graph_capture_record_stream_reuse = true;
  release("2.9");

  p.conf_variables = {"PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF"};
  p.conf_keys.Add({ConfKey::kPerProcessMemoryFraction});
  p.division_list_rest_excludes_last = true;  // assumed
  p.pool_search = PoolSearch::kNewestFirst;
  p.no_split_pools = true;
  p.use_on_oom = UseOnOom::kBeforeRelease;                     // assumed
  p.use_on_oom_forgotten_at_destruction = true;                // assumed
  p.user_allocator_pools = UserAllocatorPools::kOwnAllocator;  // assumed
  p.fraction_total = FractionTotal::kTotalGlobalMem;
  p.fraction_sticky = false;
  p.can_skip_actions = true;
  p.snapshot.user_metadata = true;
  release("2.10");

  p.conf_keys.Add({ConfKey::kLargeSegmentSizeMb});
  p.max_split_may_equal_large_segment = true;
  p.parse_resets_max_non_split_rounding = true;
  release("2.11");

  p.conf_keys.Add(
      {ConfKey::kThrowOnCudamallocOom, ConfKey::kPinnedFreeCatchAll});  // the second assumed
  p.counts_oom_rejections = true;
  release("2.12");

  p.pool_context_acts_as_capture = false;
  p.empty_cache_in_pool = EmptyCacheInPool::kAsIfNotInPool;
  p.reserved_bytes_by_private_pools = true;
  p.snapshot.pool_id = true;
  release("2.13");

  p.conf_keys.Add(
      {ConfKey::kExpandableSegmentsReserve, ConfKey::kExpandableSegmentsReserveByClass});
  p.no_split_forgotten_at_destruction = true;
  release("2.14");

  release("2.15");
  return rows;
}

constexpr std::array<TorchProfile, kReleases> kProfiles = MakeProfiles();
static_assert(kProfiles.back().release == "2.15");

}  // namespace

absl::Span<const TorchProfile> AllTorchProfiles() { return kProfiles; }

const TorchProfile& DefaultTorchProfile() {
  return *std::find_if(kProfiles.begin(), kProfiles.end(), [](const TorchProfile& profile) {
    return profile.release == kDefaultRelease;
  });
}

namespace {

// "2.6.1+cu124" -> "2.6"; empty if it does not begin with two numbers.
std::string MajorMinor(std::string_view version) {
  if (!version.empty() && (version[0] == 'v' || version[0] == 'V')) version.remove_prefix(1);
  size_t major = 0;
  while (major < version.size() && absl::ascii_isdigit(version[major])) ++major;
  if (major == 0 || major > 3 || major >= version.size() || version[major] != '.') return "";
  size_t end = major + 1;
  while (end < version.size() && absl::ascii_isdigit(version[end])) ++end;
  if (end == major + 1 || end - major > 4) return "";
  // What may follow: ".1", "a0", "rc1", "+cu124", "-dev".
  if (end < version.size() && !absl::ascii_isalpha(version[end]) &&
      std::string_view(".+-").find(version[end]) == std::string_view::npos) {
    return "";
  }
  return std::string(version.substr(0, end));
}

// "2.11" -> 20011.
int Rank(std::string_view major_minor) {
  int major = 0, minor = 0;
  const size_t dot = major_minor.find('.');
  std::from_chars(major_minor.data(), major_minor.data() + dot, major);
  std::from_chars(major_minor.data() + dot + 1, major_minor.data() + major_minor.size(), minor);
  return major * 10000 + minor;
}

}  // namespace

absl::StatusOr<const TorchProfile*> FindTorchProfile(std::string_view version) {
  const std::string wanted = MajorMinor(version);
  if (wanted.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("PyTorch version: expected something like 2.6 or 2.6.0+cu124, found \"",
                     std::string(version), "\""));
  }
  std::vector<std::string> known;
  for (const TorchProfile& profile : kProfiles) {
    if (Rank(profile.release) == Rank(wanted)) return &profile;
    known.emplace_back(profile.release);
  }
  if (Rank(wanted) > Rank(known.back())) {
    return absl::NotFoundError(absl::StrCat(
        "PyTorch ", wanted, " is newer than the newest release known, ", known.back()));
  }
  return absl::NotFoundError(
      absl::StrCat("PyTorch ", wanted, " is not known; known are ", absl::StrJoin(known, ", ")));
}

}  // namespace memreplay
