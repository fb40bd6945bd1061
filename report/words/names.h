// Names as users read them: for the categories of allocations, whose words
// python/memreplay/_words.py has a copy of that a test holds to these, for where the memory is, for
// verdicts and for other enum values of a Report; JSON shows the names of the schema.
#pragma once

#include <google/protobuf/map.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "proto/report.pb.h"

namespace memreplay {

// Returns "KV cache" for the category "cache" and the tag "kv_cache"; a tag of the
// user's own is its own name.
std::string_view CategoryNoun(std::string_view category);

// A column of a table by category. Small categories share one; it is called by those that it has.
struct CategoryColumn {
  std::string heading;         // of at most 8 characters
  std::string sentence;        // "parameters and buffers"; "" if there are no bytes
  std::vector<int64_t> bytes;  // a row each
};

// Returns the columns of rows with bytes by tag or category. `with_unknown` adds a last column for
// what is unknown, which written schedules do not have.
using BytesByTag = google::protobuf::Map<std::string, int64_t>;
std::vector<CategoryColumn> CategoryColumns(const std::vector<const BytesByTag*>& rows,
                                            bool with_unknown);

// A part of a GPU's memory, and what it is used for.
struct MemoryPart {
  int64_t bytes = 0;
  std::string what;
};

// Returns the parts that are not 0, followed by their total if it is known.
std::vector<MemoryPart> PartsOf(const proto::MemoryUse& use);

// Returns "survives", "served here" or "runs out": the outcome of a change.
std::string_view ResultOf(bool survives, bool served);

// Returns a phrase for use in a sentence: "memory shortage" for true_shortage.
std::string_view VerdictPhrase(proto::Verdict verdict);

// Returns a name for the start of an answer: "MEMORY SHORTAGE" for true_shortage.
std::string VerdictName(proto::Verdict verdict);

// Returns how the steps of a loop were found: "repetition" for period.
std::string_view StepSourceName(proto::StepSummary::Source source);

// Returns the name of a severity: "incomplete" for data_loss.
std::string_view SeverityName(proto::Diagnostic::Severity severity);

}  // namespace memreplay
