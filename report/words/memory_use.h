// Names for where the memory is, for verdicts and for other enum values of a Report, as users read
// them; JSON shows the names of the schema.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "proto/report.pb.h"

namespace memreplay {

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
