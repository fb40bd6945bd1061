#include "sim/settings/allocator_config.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "absl/strings/charconv.h"
#include "absl/strings/str_join.h"
#include "sim/settings/conf_tokens.h"
#include "trace/value/status_macros.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

using Tokens = std::vector<std::string>;

constexpr uint64_t kMiBShift = 20;
constexpr uint64_t kMaxMiB = ~uint64_t{0} >> kMiBShift;  // larger values are cut to this
constexpr uint64_t kLargeBufferMiB = 20;
constexpr uint64_t kMinLargeAllocMiB = 10;
constexpr uint64_t kMaxRegisterThreads = 128;

Bytes FromMiB(uint64_t mib) { return Bytes(std::min(mib, kMaxMiB) << kMiBShift); }

// A setter of keys' values that both grammars share.
class ValueSetter {
 public:
  ValueSetter(const TorchProfile& profile, AllocatorConfig* config,
              std::vector<std::string>* warnings)
      : profile_(profile), config_(*config), warnings_(warnings) {}

  absl::Status Error(std::string_view key, std::string_view expected,
                     std::string_view found) const {
    return absl::InvalidArgumentError(StrCat(key, ": expected ", expected, ", found ", found,
                                             "; this is an error in PyTorch ", profile_.release));
  }

  absl::Status Set(ConfKey key, const std::string& value) {
    AllocatorConfig& c = config_;
    bool unused = false;
    switch (key) {
      case ConfKey::kBackend: return SetBackend(value);
      case ConfKey::kMaxSplitSizeMb: return SetMiB(key, value, &c.max_split_size);
      case ConfKey::kMaxNonSplitRoundingMb: return SetMiB(key, value, &c.max_non_split_rounding);
      case ConfKey::kLargeSegmentSizeMb: return SetMiB(key, value, &c.large_segment_size);
      case ConfKey::kExpandableSegments: return SetBool(key, value, &c.expandable_segments);
      case ConfKey::kReleaseLockOnCudamalloc:
        return SetBool(key, value, &c.release_lock_on_cudamalloc);
      case ConfKey::kGraphCaptureRecordStreamReuse:
        return SetBool(key, value, &c.graph_capture_record_stream_reuse);
      case ConfKey::kThrowOnCudamallocOom: return SetBool(key, value, &c.throw_on_cudamalloc_oom);
      case ConfKey::kPinnedUseCudaHostRegister:
      case ConfKey::kPinnedUseBackgroundThreads:
      case ConfKey::kPinnedFreeCatchAll: return SetBool(key, value, &unused);
      case ConfKey::kPinnedNumRegisterThreads:
      case ConfKey::kPinnedReserveSegmentSizeMb:
      case ConfKey::kPinnedMaxRoundThresholdMb:
      case ConfKey::kPinnedMaxCachedSizeMb: return CheckPinned(key, value);
      case ConfKey::kGarbageCollectionThreshold: {
        const std::optional<double> threshold = ConfDouble(value);
        if (!threshold || !(*threshold > 0 && *threshold < 1)) {
          return Bad(key, "a number between 0 and 1, both excluded", value);
        }
        c.garbage_collection_threshold = *threshold;
        return absl::OkStatus();
      }
      case ConfKey::kPerProcessMemoryFraction: {
        const std::optional<double> fraction = ConfDouble(value);
        if (!fraction || !(*fraction >= 0 && *fraction <= 1)) {
          return Bad(key, "a number from 0 to 1", value);
        }
        c.per_process_memory_fraction = *fraction;
        return absl::OkStatus();
      }
      case ConfKey::kRoundupPower2Divisions: {
        const std::optional<uint64_t> divisions = Integer(value);
        if (!divisions || !std::has_single_bit(*divisions)) {
          return Bad(key, "a power of two or a list such as [64:8,>:1]", value);
        }
        c.roundup_power2_divisions.fill(*divisions);
        return absl::OkStatus();
      }
      case ConfKey::kExpandableSegmentsReserve: SetReserve(value); return absl::OkStatus();
      case ConfKey::kExpandableSegmentsReserveByClass:
        // Only a C++ call, which traces do not show, assigns a class to a stream.
        return absl::OkStatus();
    }
    return absl::OkStatus();
  }

  // Applies one "boundary:divisions" of a list. `last` is the index that the previous one set, null
  // before the first.
  absl::Status SetDivisions(const std::string& boundary, const std::string& value,
                            std::optional<size_t>* last) {
    const ConfKey key = ConfKey::kRoundupPower2Divisions;
    auto& table = config_.roundup_power2_divisions;
    const bool is_rest = boundary == ">";
    size_t index = 0;
    if (!is_rest) {
      const std::optional<uint64_t> mib = ConfUnsigned(boundary);
      if (!mib || !std::has_single_bit(*mib)) {
        return Bad(key, "boundaries that are powers of two", boundary);
      }
      index = std::min<size_t>(std::bit_width(*mib) - 1, table.size() - 1);
    }
    const std::optional<uint64_t> divisions = Integer(value);
    if (!divisions || !(std::has_single_bit(*divisions) ||
                        (*divisions == 0 && profile_.division_list_allows_zero))) {
      return Bad(key,
                 profile_.division_list_allows_zero ? "divisions that are powers of two or 0"
                                                    : "divisions that are powers of two",
                 value);
    }
    if (is_rest) {
      const size_t from = last->value_or(0) + (profile_.division_list_rest_excludes_last ? 1 : 0);
      for (size_t i = from; i < table.size(); ++i) table[i] = *divisions;
      return absl::OkStatus();
    }
    if (!last->has_value()) std::fill_n(table.begin(), index, *divisions);
    table[index] = *divisions;
    *last = index;
    return absl::OkStatus();
  }

 private:
  absl::Status Bad(ConfKey key, std::string_view expected, const std::string& value) const {
    return Error(ConfKeyName(key), expected, StrCat("\"", value, "\""));
  }
  std::optional<uint64_t> Integer(const std::string& value) const {
    return profile_.conf_shared_parser ? ConfUnsigned(value) : ConfInt(value);
  }
  absl::Status SetBool(ConfKey key, const std::string& value, bool* to) const {
    if (value != "True" && value != "False") return Bad(key, "True or False", value);
    *to = value == "True";
    return absl::OkStatus();
  }

  absl::Status SetMiB(ConfKey key, const std::string& value, Bytes* to) const {
    const std::optional<uint64_t> mib = Integer(value);
    if (!mib) return Bad(key, "a number of MiB", value);
    if (key == ConfKey::kLargeSegmentSizeMb) {
      if (*mib <= kMinLargeAllocMiB) {
        return Bad(key, StrCat("more than ", kMinLargeAllocMiB), value);
      }
    } else if (profile_.max_split_may_equal_large_segment) {
      const uint64_t least = config_.large_segment_size.value() >> kMiBShift;
      if (*mib < least) return Bad(key, StrCat("at least ", least), value);
    } else if (*mib <= kLargeBufferMiB) {
      return Bad(key, StrCat("more than ", kLargeBufferMiB), value);
    }
    *to = FromMiB(*mib);
    return absl::OkStatus();
  }

  absl::Status SetBackend(const std::string& value) {
    if (value != "native" && value != "cudaMallocAsync") {
      return Bad(ConfKey::kBackend, "native or cudaMallocAsync", value);
    }
    const bool is_native = value == "native";
    if (is_native != (config_.backend == Backend::kNative)) {
      return Bad(ConfKey::kBackend, "the backend chosen when PyTorch was loaded", value);
    }
    return absl::OkStatus();
  }

  absl::Status CheckPinned(ConfKey key, const std::string& value) const {
    const std::optional<uint64_t> number = Integer(value);
    if (!number) return Bad(key, "a number", value);
    if (key == ConfKey::kPinnedNumRegisterThreads &&
        (!std::has_single_bit(*number) || *number > kMaxRegisterThreads)) {
      return Bad(key, StrCat("a power of two up to ", kMaxRegisterThreads), value);
    }
    if (key == ConfKey::kPinnedReserveSegmentSizeMb && *number == 0) {
      return Bad(key, "more than 0", value);
    }
    return absl::OkStatus();
  }

  void SetReserve(const std::string& value) {
    std::string_view number = value;
    const bool is_gib = !number.empty() && (number.back() == 'G' || number.back() == 'g');
    if (is_gib) number.remove_suffix(1);
    if (!number.empty() && number.front() == '+') number.remove_prefix(1);
    double amount = 0;
    const auto [end, error] =
        absl::from_chars(number.data(), number.data() + number.size(), amount);
    // Abseil also reads hexadecimal numbers.
    if (error != std::errc() || end != number.data() + number.size() || !std::isfinite(amount) ||
        amount <= 0 || number.find_first_of("xX") != number.npos) {
      if (warnings_ != nullptr) {
        warnings_->push_back(StrCat(
            "expandable_segments_reserve: expected a positive share such as 0.5 or a size such as "
            "40G, found \"",
            value, "\"; PyTorch ignores it with a warning"));
      }
      return;
    }
    ExpandableReserve reserve;
    if (is_gib) {  // 2^33 GiB is beyond any device and still fits
      reserve.bytes = Bytes(static_cast<uint64_t>(std::min(amount, 0x1p33) * 0x1p30));
    } else {
      reserve.share = amount;
    }
    config_.expandable_segments_reserve = reserve;
  }

  const TorchProfile& profile_;
  AllocatorConfig& config_;
  std::vector<std::string>* warnings_;
};

// What both grammars have: the tokens, of which one is the current one, and errors about them.
class Grammar {
 public:
  Grammar(const Tokens& tokens, const TorchProfile& profile, ValueSetter* setter)
      : tokens_(tokens), profile_(profile), setter_(*setter) {}

 protected:
  // Returns the key that the current token names.
  absl::StatusOr<ConfKey> Key() const {
    const std::optional<ConfKey> key = FindConfKey(tokens_[at_]);
    if (key && profile_.conf_keys.Has(*key)) return *key;
    return setter_.Error("settings", "a key that this release knows",
                         StrCat("\"", tokens_[at_], "\""));
  }
  absl::Status PastEnd(std::string_view where, std::string_view expected = "a value") const {
    return setter_.Error(where, expected, "the end");
  }

  const Tokens& tokens_;
  const TorchProfile& profile_;
  ValueSetter& setter_;
  size_t at_ = 0;
};

// The grammar up to 2.9, which requires every separator.
class OwnGrammar : public Grammar {
 public:
  using Grammar::Grammar;

  absl::Status Parse() {
    while (at_ < tokens_.size()) {
      const std::string& name = tokens_[at_];
      ASSIGN_OR_RETURN(const ConfKey key, Key());
      ++at_;
      RETURN_IF_ERROR(Expect(name, ":"));
      if (at_ >= tokens_.size()) return PastEnd(name);
      RETURN_IF_ERROR(key == ConfKey::kRoundupPower2Divisions && tokens_[at_] == "["
                          ? List(name)
                          : setter_.Set(key, tokens_[at_]));
      ++at_;
      if (at_ < tokens_.size()) {
        RETURN_IF_ERROR(Expect(name, ","));
      }
    }
    return absl::OkStatus();
  }

 private:
  absl::Status Expect(std::string_view where, std::string_view token) {
    if (at_ < tokens_.size() && tokens_[at_] == token) {
      ++at_;
      return absl::OkStatus();
    }
    return setter_.Error(where, StrCat("\"", token, "\""),
                         at_ < tokens_.size() ? StrCat("\"", tokens_[at_], "\"") : "the end");
  }

  // Reads from "[" to "]" or to the end, since a list may end after "[" and ",".
  absl::Status List(std::string_view where) {
    std::optional<size_t> last;
    ++at_;
    while (at_ < tokens_.size() && tokens_[at_] != "]") {
      const std::string& boundary = tokens_[at_++];
      RETURN_IF_ERROR(Expect(where, ":"));
      if (at_ >= tokens_.size()) return PastEnd(where);
      RETURN_IF_ERROR(setter_.SetDivisions(boundary, tokens_[at_], &last));
      ++at_;
      if (at_ >= tokens_.size() && profile_.unclosed_list_undefined) {
        return absl::InvalidArgumentError(
            StrCat(where, ": expected \"]\", found the end; PyTorch ", profile_.release,
                   " reads past the end here, which is undefined behaviour and may crash"));
      }
      if (at_ >= tokens_.size() || tokens_[at_] != "]") {
        RETURN_IF_ERROR(Expect(where, ","));
      }
    }
    return absl::OkStatus();
  }
};

// The grammar from 2.10 on. Two parsers, the one shared by all accelerators and CUDA's, read the
// string one after the other, and each skips the other's keys. The token between two pairs is
// skipped, whatever it is, and so is the one between a key and its value.
class SharedGrammar : public Grammar {
 public:
  using Grammar::Grammar;

  // Applies large_segment_size_mb first, wherever it stands.
  absl::Status ParseLargeSegmentSize() {
    for (at_ = 0; at_ < tokens_.size(); ++at_) {
      if (FindConfKey(tokens_[at_]) != ConfKey::kLargeSegmentSizeMb) continue;
      RETURN_IF_ERROR(Pair(ConfKey::kLargeSegmentSizeMb));
    }
    return absl::OkStatus();
  }

  absl::Status Parse(bool is_cuda) {
    for (at_ = 0; at_ < tokens_.size(); ++at_) {
      const std::string& name = tokens_[at_];
      ASSIGN_OR_RETURN(const ConfKey key, Key());
      RETURN_IF_ERROR(IsCudaConfKey(key) == is_cuda && key != ConfKey::kLargeSegmentSizeMb
                          ? Pair(key)
                          : PassOver(name));
      if (at_ + 1 < tokens_.size()) ++at_;
    }
    return absl::OkStatus();
  }

 private:
  // Reads from the key to the last token of its value.
  absl::Status Pair(ConfKey key) {
    const std::string& name = tokens_[at_];
    at_ += 2;
    if (at_ >= tokens_.size()) return PastEnd(name);
    if (key == ConfKey::kRoundupPower2Divisions && tokens_[at_] == "[") {
      std::optional<size_t> last;
      return List(
          name,
          [&](const std::string& boundary, const std::string& value) {
            return setter_.SetDivisions(boundary, value, &last);
          },
          [](const std::string& token) { return token != "]"; });
    }
    if (key == ConfKey::kExpandableSegmentsReserveByClass) {
      return List(
          name, [](const std::string&, const std::string&) { return absl::OkStatus(); },
          [](const std::string& token) { return token == ","; });
    }
    return setter_.Set(key, tokens_[at_]);
  }

  // `is_separator` returns whether the token after an item is skipped.
  template <typename SetItem, typename IsSeparator>
  absl::Status List(std::string_view where, SetItem set_item, IsSeparator is_separator) {
    while (++at_ < tokens_.size() && tokens_[at_] != "]") {
      const std::string& first = tokens_[at_];
      at_ += 2;
      if (at_ >= tokens_.size()) return PastEnd(where);
      RETURN_IF_ERROR(set_item(first, tokens_[at_]));
      if (at_ + 1 >= tokens_.size()) return PastEnd(where);
      if (is_separator(tokens_[at_ + 1])) ++at_;
    }
    if (at_ >= tokens_.size()) return PastEnd(where, "\"]\"");
    return absl::OkStatus();
  }

  absl::Status PassOver(std::string_view name) {
    at_ += 2;
    if (at_ >= tokens_.size()) return PastEnd(name);
    if (tokens_[at_] != "[") return absl::OkStatus();
    while (++at_ < tokens_.size() && tokens_[at_] != "]") {
    }
    if (at_ >= tokens_.size()) return PastEnd(name, "\"]\"");
    return absl::OkStatus();
  }
};

// Returns the backend chosen when the library is loaded: the value after the word "backend",
// whatever the rest is.
Backend BackendAtLoad(const Tokens& tokens) {
  for (size_t i = 0; i + 2 < tokens.size(); ++i) {
    if (tokens[i] == "backend" && tokens[i + 2] == "cudaMallocAsync") {
      return Backend::kCudaMallocAsync;
    }
  }
  return Backend::kNative;
}

void WarnOfNativeKeys(const Tokens& tokens, std::vector<std::string>* warnings) {
  std::vector<std::string> ignored;
  for (const std::string& token : tokens) {
    const std::optional<ConfKey> key = FindConfKey(token);
    if (key && *key != ConfKey::kBackend) ignored.push_back(token);
  }
  if (ignored.empty()) return;
  warnings->push_back(StrCat("backend:cudaMallocAsync ignores ", absl::StrJoin(ignored, ", ")));
}

}  // namespace

absl::Status ParseAllocatorConf(std::string_view conf, const TorchProfile& profile,
                                AllocatorConfig* config, std::vector<std::string>* warnings) {
  const Tokens tokens = ConfTokens(conf, profile.conf_shared_parser);
  if (!std::exchange(config->backend_loaded, true)) config->backend = BackendAtLoad(tokens);
  config->conf = std::string(conf);
  config->max_split_size = kUnlimited;
  config->roundup_power2_divisions.fill(0);
  config->garbage_collection_threshold = 0;
  if (warnings != nullptr && config->backend == Backend::kCudaMallocAsync) {
    WarnOfNativeKeys(tokens, warnings);
  }

  ValueSetter setter(profile, config, warnings);
  if (!profile.conf_shared_parser) return OwnGrammar(tokens, profile, &setter).Parse();

  SharedGrammar grammar(tokens, profile, &setter);
  if (profile.conf_keys.Has(ConfKey::kLargeSegmentSizeMb)) {
    RETURN_IF_ERROR(grammar.ParseLargeSegmentSize());
  }
  if (profile.parse_resets_max_non_split_rounding) {
    config->max_non_split_rounding = config->large_segment_size;
  }
  RETURN_IF_ERROR(grammar.Parse(/*is_cuda=*/false));
  return grammar.Parse(/*is_cuda=*/true);
}

}  // namespace memreplay
