#include "sim/settings/conf_lint.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_join.h"
#include "sim/settings/allocator_config.h"
#include "sim/settings/conf_tokens.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

// The input of the rules.
struct Subject {
  const TorchProfile& profile;
  std::set<ConfKey> keys;     // those mentioned and known to this release
  AllocatorConfig config;     // after parsing
  absl::Status parse_status;  // of parsing

  bool Has(ConfKey key) const { return keys.count(key) != 0; }
};

struct Findings {
  void Add(LintSeverity severity, std::string_view key, std::string sentence) {
    list.push_back({severity, std::string(key), std::move(sentence)});
  }
  void Warn(ConfKey key, std::string sentence) {
    Add(LintSeverity::kWarning, ConfKeyName(key), std::move(sentence));
  }
  void Note(ConfKey key, std::string sentence) {
    Add(LintSeverity::kNote, ConfKeyName(key), std::move(sentence));
  }

  std::vector<LintFinding> list;
};

std::string Percent(uint64_t divisions) { return StrCat((100 + divisions / 2) / divisions, " %"); }

// Returns the number of insertions, deletions and replacements that turn `a` into `b`.
size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

// Returns the key of this release that `word` resembles, or "" if none does.
std::string_view LooksLike(std::string_view word, const TorchProfile& profile) {
  constexpr size_t kTypos = 3;
  std::string_view best;
  size_t least = std::min(kTypos, word.size() / 2) + 1;
  for (int k = 0; k <= static_cast<int>(kLastConfKey); ++k) {
    const std::string_view name = ConfKeyName(ConfKey(k));
    const size_t distance = EditDistance(word, name);
    if (profile.conf_keys.Has(ConfKey(k)) && distance < least) {
      least = distance;
      best = name;
    }
  }
  return best;
}

// Reports words in the place of a key that this release does not know. Returns whether there are
// any.
bool LintUnknownKeys(const std::vector<std::string>& tokens, const TorchProfile& profile,
                     Findings* findings) {
  bool found = false;
  int depth = 0;
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i] == "[") ++depth;
    if (tokens[i] == "]") --depth;
    const bool is_word = std::string_view(",:[]").find(tokens[i][0]) == std::string_view::npos;
    if (!is_word || depth != 0 || (i > 0 && tokens[i - 1] != ",")) continue;
    const std::optional<ConfKey> key = FindConfKey(tokens[i]);
    if (key && profile.conf_keys.Has(*key)) continue;
    found = true;
    if (key) {
      const auto all = AllTorchProfiles();
      const auto since = std::find_if(
          all.begin(), all.end(), [&](const TorchProfile& row) { return row.conf_keys.Has(*key); });
      findings->Add(LintSeverity::kError, tokens[i],
                    StrCat("PyTorch ", profile.release, " does not know this key and raises an ",
                           "error; it is read from ", since->release, " on"));
    } else {
      const std::string_view meant = LooksLike(tokens[i], profile);
      findings->Add(
          LintSeverity::kError, tokens[i],
          StrCat("no release knows this key; PyTorch ", profile.release, " raises an error",
                 meant.empty() ? "" : StrCat("; did you mean ", meant, "?")));
    }
  }
  return found;
}

void LintRepeatedKeys(const std::vector<std::string>& tokens, Findings* findings) {
  std::set<ConfKey> seen, told;
  for (size_t i = 0; i < tokens.size(); ++i) {
    const std::optional<ConfKey> key = FindConfKey(tokens[i]);
    if (!key || (i > 0 && tokens[i - 1] != ",")) continue;
    if (!seen.insert(*key).second && told.insert(*key).second) {
      findings->Warn(*key, "is given more than once; the last one counts");
    }
  }
}

// Reports missing separators, which some releases ignore and others reject.
void LintSeparators(std::string_view conf, const Subject& subject, Findings* findings) {
  if (!subject.profile.conf_shared_parser || !subject.parse_status.ok()) return;
  TorchProfile strict = subject.profile;
  strict.conf_shared_parser = false;
  AllocatorConfig unused;
  const absl::Status status = ParseAllocatorConf(conf, strict, &unused);
  if (status.ok()) return;
  std::string_view why = ToStd(status.message());
  why = why.substr(0, why.find(';'));
  findings->Add(
      LintSeverity::kWarning, "",
      StrCat("is accepted only because PyTorch ", subject.profile.release,
             " does not check separators (", why, "), so one token may have been skipped"));
}

void LintMaxSplit(const Subject& subject, Findings* findings) {
  const AllocatorConfig& config = subject.config;
  const bool is_split = subject.Has(ConfKey::kMaxSplitSizeMb);
  if (is_split && config.expandable_segments) {
    findings->Warn(ConfKey::kMaxSplitSizeMb,
                   "can make reserved memory grow without bound together with expandable_segments: "
                   "freed neighbours in an expandable segment merge into blocks of max_split_size "
                   "or more, which smaller requests may then not use (pytorch#193400, "
                   "pytorch#123548; observed in every release from 2.1 to 2.15). Expandable "
                   "segments do not need max_split_size_mb: leave it out");
  }
  if (is_split && config.max_split_size >= GiB(1 << 20) && config.max_split_size != kUnlimited) {
    findings->Warn(ConfKey::kMaxSplitSizeMb,
                   "is larger than any device; leave it out for \"unlimited\"");
  }
  if (!is_split && subject.Has(ConfKey::kMaxNonSplitRoundingMb)) {
    findings->Warn(ConfKey::kMaxNonSplitRoundingMb, "has no effect without max_split_size_mb");
  }
}

void LintGarbageCollection(const Subject& subject, Findings* findings) {
  if (!subject.Has(ConfKey::kGarbageCollectionThreshold)) return;
  const TorchProfile& profile = subject.profile;
  if (!(subject.config.per_process_memory_fraction < 1)) {
    std::string how =
        profile.fraction_sticky
            ? "torch.cuda.set_per_process_memory_fraction is called (with any value, also 1.0)"
            : "torch.cuda.set_per_process_memory_fraction is called with less than 1";
    if (profile.conf_keys.Has(ConfKey::kPerProcessMemoryFraction)) {
      how += " or per_process_memory_fraction below 1 is given here";
    }
    findings->Warn(ConfKey::kGarbageCollectionThreshold,
                   StrCat("has no effect unless ", how, ": it is a share of that limit"));
  }
  if (subject.config.expandable_segments) {
    findings->Warn(ConfKey::kGarbageCollectionThreshold,
                   "does not free expandable segments, only blocks from cudaMalloc");
  }
}

void LintDivisions(const Subject& subject, Findings* findings) {
  if (!subject.Has(ConfKey::kRoundupPower2Divisions)) return;
  uint64_t coarsest = 0;
  bool has_one = false;
  for (const uint64_t divisions : subject.config.roundup_power2_divisions) {
    has_one |= divisions == 1;
    if (divisions > 1 && (coarsest == 0 || divisions < coarsest)) coarsest = divisions;
  }
  if (has_one && subject.profile.division_one_keeps_size) {
    findings->Warn(ConfKey::kRoundupPower2Divisions,
                   StrCat("divisions of 1 leave sizes unrounded in PyTorch ",
                          subject.profile.release, ", not even to 512 bytes"));
  } else if (has_one && coarsest == 0) {
    findings->Warn(ConfKey::kRoundupPower2Divisions, "divisions of 1 change nothing");
  }
  if (coarsest != 0) {
    findings->Add(coarsest == 2 ? LintSeverity::kWarning : LintSeverity::kNote,
                  ConfKeyName(ConfKey::kRoundupPower2Divisions),
                  StrCat(coarsest, " divisions make a block up to ", Percent(coarsest),
                         " larger than its request"));
  }
}

void LintExpandable(const Subject& subject, Findings* findings) {
  if (subject.config.expandable_segments) return;
  for (const ConfKey key :
       {ConfKey::kExpandableSegmentsReserve, ConfKey::kExpandableSegmentsReserveByClass}) {
    if (subject.Has(key)) {
      findings->Warn(key, "has no effect without expandable_segments:True");
    }
  }
}

void LintFraction(const Subject& subject, Findings* findings) {
  if (!subject.Has(ConfKey::kPerProcessMemoryFraction)) return;
  if (subject.config.per_process_memory_fraction == 0) {
    findings->Warn(ConfKey::kPerProcessMemoryFraction, "0 prevents every allocation");
  }
  findings->Note(ConfKey::kPerProcessMemoryFraction,
                 "is read when a device is first used; setting it later changes nothing");
}

void LintResets(const Subject& subject, Findings* findings) {
  std::vector<std::string> forgotten;
  for (const ConfKey key : {ConfKey::kMaxSplitSizeMb, ConfKey::kRoundupPower2Divisions,
                            ConfKey::kGarbageCollectionThreshold}) {
    if (subject.Has(key)) forgotten.emplace_back(ConfKeyName(key));
  }
  if (subject.profile.parse_resets_max_non_split_rounding &&
      subject.Has(ConfKey::kMaxNonSplitRoundingMb)) {
    forgotten.emplace_back(ConfKeyName(ConfKey::kMaxNonSplitRoundingMb));
  }
  if (forgotten.empty()) return;
  findings->Add(LintSeverity::kNote, "",
                StrCat("any later settings string, whatever it sets, first resets to the default: ",
                       absl::StrJoin(forgotten, ", ")));
}

// Checks NAME in "export NAME=conf" and returns the conf.
std::string_view TakeVariable(std::string_view conf, const TorchProfile& profile,
                              Findings* findings) {
  constexpr std::string_view kExport = "export ";
  std::string_view text = conf;
  if (text.substr(0, kExport.size()) == kExport) text.remove_prefix(kExport.size());
  const size_t equals = text.find('=');
  if (equals == std::string_view::npos ||
      text.substr(0, equals).find("ALLOC_CONF") == std::string_view::npos) {
    return conf;
  }
  const std::string_view name = text.substr(0, equals);
  const auto& read = profile.conf_variables;
  if (std::find(read.begin(), read.end(), name) == read.end()) {
    findings->Add(LintSeverity::kError, name,
                  StrCat("PyTorch ", profile.release, " does not read this variable: set ", read[0],
                         " instead"));
  }
  return text.substr(equals + 1);
}

void LintVariables(const TorchProfile& profile, Findings* findings) {
  std::vector<std::string> names;
  for (const std::string_view name : profile.conf_variables) {
    if (!name.empty()) names.emplace_back(name);
  }
  std::string sentence =
      StrCat("PyTorch ", profile.release, " reads ", absl::StrJoin(names, ", else "));
  if (names.size() == 1) sentence += " and no other variable (PYTORCH_ALLOC_CONF begins with 2.10)";
  findings->Add(LintSeverity::kNote, "", std::move(sentence));
}

}  // namespace

std::vector<LintFinding> LintAllocatorConf(std::string_view conf, const TorchProfile& profile) {
  Findings findings;
  conf = TakeVariable(conf, profile, &findings);
  const std::vector<std::string> tokens = ConfTokens(conf, profile.conf_shared_parser);

  Subject subject{profile, {}, {}, {}};
  std::vector<std::string> ignored;
  subject.parse_status = ParseAllocatorConf(conf, profile, &subject.config, &ignored);
  for (const std::string& token : tokens) {
    const std::optional<ConfKey> key = FindConfKey(token);
    if (key && profile.conf_keys.Has(*key)) subject.keys.insert(*key);
  }

  const bool told = LintUnknownKeys(tokens, profile, &findings);
  if (!subject.parse_status.ok()) {
    const std::string_view message = ToStd(subject.parse_status.message());
    const size_t colon = message.find(": ");
    const bool names_key = FindConfKey(message.substr(0, colon)).has_value();
    if (names_key || !told) {
      findings.Add(LintSeverity::kError, names_key ? message.substr(0, colon) : "",
                   std::string(message.substr(colon + 2)));
    }
  }
  LintRepeatedKeys(tokens, &findings);
  LintSeparators(conf, subject, &findings);
  for (std::string& warning : ignored) {
    findings.Add(LintSeverity::kWarning, "", std::move(warning));
  }
  if (subject.config.backend == Backend::kNative) {
    LintMaxSplit(subject, &findings);
    LintGarbageCollection(subject, &findings);
    LintDivisions(subject, &findings);
    LintExpandable(subject, &findings);
    LintResets(subject, &findings);
  }
  LintFraction(subject, &findings);
  std::stable_partition(findings.list.begin(), findings.list.end(), [](const LintFinding& finding) {
    return finding.severity == LintSeverity::kError;
  });
  LintVariables(profile, &findings);
  return std::move(findings.list);
}

std::string ConfHint(std::string_view conf, const TorchProfile& profile) {
  for (const LintFinding& finding : LintAllocatorConf(conf, profile)) {
    const size_t hint = finding.sentence.find("; did you mean ");
    if (finding.severity == LintSeverity::kError && hint != std::string::npos) {
      return finding.sentence.substr(hint);
    }
  }
  return "";
}

}  // namespace memreplay
