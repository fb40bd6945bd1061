#include "sim/settings/conf_tokens.h"

#include <cerrno>
#include <cstdlib>
#include <limits>
#include <utility>

namespace memreplay {
namespace {

struct KeyRow {
  std::string_view name;
  ConfKey key;
  bool is_cuda;
};

// The first row of a key is its spelling; others are aliases.
constexpr KeyRow kKeys[] = {
    {"backend", ConfKey::kBackend, true},
    {"max_split_size_mb", ConfKey::kMaxSplitSizeMb, false},
    {"max_non_split_rounding_mb", ConfKey::kMaxNonSplitRoundingMb, false},
    {"garbage_collection_threshold", ConfKey::kGarbageCollectionThreshold, false},
    {"roundup_power2_divisions", ConfKey::kRoundupPower2Divisions, false},
    {"expandable_segments", ConfKey::kExpandableSegments, false},
    {"release_lock_on_cudamalloc", ConfKey::kReleaseLockOnCudamalloc, true},
    {"release_lock_on_hipmalloc", ConfKey::kReleaseLockOnCudamalloc, true},
    {"pinned_use_cuda_host_register", ConfKey::kPinnedUseCudaHostRegister, true},
    {"pinned_use_hip_host_register", ConfKey::kPinnedUseCudaHostRegister, true},
    {"pinned_num_register_threads", ConfKey::kPinnedNumRegisterThreads, true},
    {"pinned_use_background_threads", ConfKey::kPinnedUseBackgroundThreads, false},
    {"pinned_reserve_segment_size_mb", ConfKey::kPinnedReserveSegmentSizeMb, true},
    {"pinned_free_catch_all", ConfKey::kPinnedFreeCatchAll, true},
    {"pinned_max_round_threshold_mb", ConfKey::kPinnedMaxRoundThresholdMb, false},
    {"pinned_max_cached_size_mb", ConfKey::kPinnedMaxCachedSizeMb, false},
    {"graph_capture_record_stream_reuse", ConfKey::kGraphCaptureRecordStreamReuse, true},
    {"per_process_memory_fraction", ConfKey::kPerProcessMemoryFraction, true},
    {"large_segment_size_mb", ConfKey::kLargeSegmentSizeMb, false},
    {"throw_on_cudamalloc_oom", ConfKey::kThrowOnCudamallocOom, true},
    {"expandable_segments_reserve", ConfKey::kExpandableSegmentsReserve, true},
    {"expandable_segments_reserve_by_class", ConfKey::kExpandableSegmentsReserveByClass, true},
};

// Returns the first row of a key; null for none.
const KeyRow* RowOf(ConfKey key) {
  for (const KeyRow& row : kKeys) {
    if (row.key == key) return &row;
  }
  return nullptr;
}

}  // namespace

std::string_view ConfVariable(std::string_view torch_version) {
  return torch_version.find("+rocm") == torch_version.npos ? "PYTORCH_CUDA_ALLOC_CONF"
                                                           : "PYTORCH_HIP_ALLOC_CONF";
}

std::vector<std::string> ConfTokens(std::string_view conf, bool shared_parser) {
  std::vector<std::string> tokens;
  std::string word;
  auto end_word = [&] {
    if (!word.empty()) tokens.push_back(std::exchange(word, std::string()));
  };
  for (const char c : conf) {
    if (c == ',' || c == ':' || c == '[' || c == ']') {
      end_word();
      tokens.emplace_back(1, c);
    } else if (c != ' ' && !(shared_parser && c >= '\t' && c <= '\r')) {
      word += c;
    }
  }
  end_word();
  return tokens;
}

std::optional<uint64_t> ConfInt(const std::string& text) {
  errno = 0;
  char* end = nullptr;
  const long value = std::strtol(text.c_str(), &end, 10);
  if (end == text.c_str() || errno == ERANGE || value < std::numeric_limits<int>::min() ||
      value > std::numeric_limits<int>::max()) {
    return std::nullopt;
  }
  return static_cast<uint64_t>(value);
}

std::optional<uint64_t> ConfUnsigned(const std::string& text) {
  errno = 0;
  char* end = nullptr;
  const unsigned long long value = std::strtoull(text.c_str(), &end, 10);
  if (end == text.c_str() || errno == ERANGE) return std::nullopt;
  return value;
}

std::optional<double> ConfDouble(const std::string& text) {
  errno = 0;
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (end == text.c_str() || errno == ERANGE) return std::nullopt;
  return value;
}

std::string_view ConfKeyName(ConfKey key) { return RowOf(key) ? RowOf(key)->name : ""; }

std::optional<ConfKey> FindConfKey(std::string_view name) {
  for (const KeyRow& row : kKeys) {
    if (row.name == name) return row.key;
  }
  return std::nullopt;
}

bool IsCudaConfKey(ConfKey key) { return RowOf(key) && RowOf(key)->is_cuda; }

}  // namespace memreplay
