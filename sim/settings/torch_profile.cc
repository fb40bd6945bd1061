#include "sim/settings/torch_profile.h"

#include <charconv>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace memreplay {
namespace {

// Each release is the previous one with its changes. All of them were observed by running the
// release's library, or in files that it wrote; see docs/fidelity.md.
std::vector<TorchProfile> MakeProfiles() {
  std::vector<TorchProfile> rows;
  TorchProfile p;
  const auto release = [&](std::string_view name) {
    p.release = name;
    rows.push_back(p);
  };

  p.conf_keys.Add({ConfKey::kBackend, ConfKey::kMaxSplitSizeMb,
                   ConfKey::kGarbageCollectionThreshold, ConfKey::kRoundupPower2Divisions});
  p.unclosed_list_undefined = true;
  p.division_one_keeps_size = true;
  p.snapshot.block_history = true;
  release("2.0");

  p.conf_keys.Add({ConfKey::kExpandableSegments});
  p.expandable_segments = true;
  p.snapshot.block_history = false;
  p.snapshot.block_addresses = true;
  p.snapshot.is_expandable = true;
  release("2.1");

  p.conf_keys.Add({ConfKey::kReleaseLockOnCudamalloc, ConfKey::kPinnedUseCudaHostRegister,
                   ConfKey::kPinnedNumRegisterThreads});
  p.snapshot.time_us = true;
  release("2.2");

  p.counts_sync_all_streams = true;
  p.counts_device_calls = true;
  p.snapshot.allocator_settings = true;
  release("2.3");

  p.division_list_allows_zero = true;
  p.division_one_keeps_size = false;
  p.deferred_free_drops_capture_streams = true;
  release("2.4");

  p.private_pools_expandable = true;
  p.gc_skips_expandable = true;
  p.release_available_skips_expandable = true;
  p.snapshot.external_annotations = true;
  release("2.5");

  p.conf_keys.Add({ConfKey::kMaxNonSplitRoundingMb, ConfKey::kPinnedUseBackgroundThreads});
  release("2.6");

  p.unclosed_list_undefined = false;
  release("2.7");

  p.use_on_oom = UseOnOom::kLast;
  p.empty_cache_in_pool = EmptyCacheInPool::kFreeablePools;
  p.snapshot.compile_context = true;
  release("2.8");

  p.conf_keys.Add({ConfKey::kGraphCaptureRecordStreamReuse});
  p.snapshot.graph_capture_record_stream_reuse = true;
  release("2.9");

  p.conf_variables = {"PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_HIP_ALLOC_CONF", "PYTORCH_ALLOC_CONF"};
  p.conf_shared_parser = true;
  p.conf_keys.Add({ConfKey::kPerProcessMemoryFraction, ConfKey::kPinnedReserveSegmentSizeMb});
  p.max_split_may_equal_large_segment = true;
  p.division_list_rest_excludes_last = true;
  p.newest_pool_first = true;
  p.no_split_pools = true;
  p.fraction_sticky = false;
  p.snapshot.user_metadata = true;
  release("2.10");

  p.conf_keys.Add({ConfKey::kLargeSegmentSizeMb});
  p.parse_resets_max_non_split_rounding = true;
  p.use_on_oom = UseOnOom::kBeforeRelease;
  release("2.11");

  p.conf_keys.Add({ConfKey::kThrowOnCudamallocOom, ConfKey::kPinnedFreeCatchAll});
  p.counts_oom_rejections = true;
  p.free_tie = FreeTie::kBlockAge;
  release("2.12");

  p.conf_keys.Add({ConfKey::kPinnedMaxRoundThresholdMb, ConfKey::kPinnedMaxCachedSizeMb});
  p.free_tie = FreeTie::kSegmentAge;
  p.pool_context_acts_as_capture = false;
  p.empty_cache_in_pool = EmptyCacheInPool::kAsIfNotInPool;
  p.reserved_bytes_by_private_pools = true;
  p.snapshot.pool_id = true;
  release("2.13");

  p.no_split_forgotten_at_destruction = true;
  release("2.14");

  p.conf_keys.Add(
      {ConfKey::kExpandableSegmentsReserve, ConfKey::kExpandableSegmentsReserveByClass});
  p.reserves_for_oversized_request = false;
  release("2.15");
  return rows;
}

// Returns "2.6" for "2.6.1+cu124", and "" if `version` does not begin with two numbers.
std::string MajorMinor(std::string_view version) {
  if (!version.empty() && (version[0] == 'v' || version[0] == 'V')) version.remove_prefix(1);
  size_t major = 0;
  while (major < version.size() && absl::ascii_isdigit(version[major])) ++major;
  if (major == 0 || major > 3 || major >= version.size() || version[major] != '.') return "";
  size_t end = major + 1;
  while (end < version.size() && absl::ascii_isdigit(version[end])) ++end;
  if (end == major + 1 || end - major > 4) return "";
  // Suffixes such as ".1", "a0", "rc1", "+cu124" and "-dev" may follow.
  if (end < version.size() && !absl::ascii_isalpha(version[end]) &&
      std::string_view(".+-").find(version[end]) == std::string_view::npos) {
    return "";
  }
  return std::string(version.substr(0, end));
}

// Returns 20011 for "2.11".
int Rank(std::string_view major_minor) {
  int major = 0, minor = 0;
  const size_t dot = major_minor.find('.');
  std::from_chars(major_minor.data(), major_minor.data() + dot, major);
  std::from_chars(major_minor.data() + dot + 1, major_minor.data() + major_minor.size(), minor);
  return major * 10000 + minor;
}

}  // namespace

absl::Span<const TorchProfile> AllTorchProfiles() {
  static const auto* const kProfiles = new std::vector<TorchProfile>(MakeProfiles());
  return *kProfiles;
}

const TorchProfile& DefaultTorchProfile() { return AllTorchProfiles().back(); }

absl::StatusOr<const TorchProfile*> FindTorchProfile(std::string_view version) {
  const std::string wanted = MajorMinor(version);
  if (wanted.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("PyTorch version: expected something like 2.6 or 2.6.0+cu124, found \"",
                     std::string(version), "\""));
  }
  std::vector<std::string> known;
  for (const TorchProfile& profile : AllTorchProfiles()) {
    if (Rank(profile.release) == Rank(wanted)) return &profile;
    known.emplace_back(profile.release);
  }
  if (Rank(wanted) > Rank(known.back())) {
    return absl::NotFoundError(absl::StrCat(
        "PyTorch ", wanted, " is newer than the newest supported release, ", known.back()));
  }
  return absl::NotFoundError(absl::StrCat("PyTorch ", wanted,
                                          " is not supported; the supported releases are ",
                                          absl::StrJoin(known, ", ")));
}

}  // namespace memreplay
