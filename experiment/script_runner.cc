#include "experiment/script_runner.h"

#include <algorithm>

#include "absl/algorithm/container.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

// "?" or "--batch_size=?"
bool IsPlaceOfValue(const std::string& word) {
  return word == "?" || (word.size() > 2 && word.ends_with("=?"));
}

}  // namespace

ScriptRunner::Answers ScriptRunner::Run(absl::Span<const ScriptRun> runs, ProgressSink* progress) {
  Answers answers = RunAll(runs, progress);
  for (const absl::StatusOr<Answer>& answer : answers) {
    if (answer.ok()) ++(answer->cached ? from_cache_ : made_);
  }
  return answers;
}

bool ScriptKey::IsIn(const std::vector<std::string>& program) const {
  return absl::c_any_of(program, IsPlaceOfValue);
}

std::vector<std::string> ScriptKey::WordsWith(const std::vector<std::string>& program,
                                              std::string_view value) const {
  std::vector<std::string> words = program;
  bool placed = false;
  for (std::string& word : words) {
    if (!IsPlaceOfValue(word)) continue;
    word = StrCat(word.substr(0, word.size() - 1), value);
    placed = true;
  }
  if (!placed) words.push_back(StrCat(name, "=", value));
  return words;
}

}  // namespace memreplay
