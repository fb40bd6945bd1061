// Finds what makes the answer of `memreplay record` bad.
#ifndef MEMREPLAY_REPORT_WORDS_RECORD_FAULTS_H_
#define MEMREPLAY_REPORT_WORDS_RECORD_FAULTS_H_

#include <string>
#include <string_view>

#include "proto/record.pb.h"

namespace memreplay {

// Returns "ValueError: too large (train.py:33)" of an exception's class, its message, which may be
// empty and of which the first line is taken, and the place of the line that raised it, or "".
std::string ErrorOf(std::string_view error, std::string_view text, std::string_view place);

// Adds to `faults` what the rest of the report shows: a script that failed, memory that ran out, a
// replay that differs.
void FindRecordFaults(proto::RecordReport* report);

}  // namespace memreplay

#endif  // MEMREPLAY_REPORT_WORDS_RECORD_FAULTS_H_
