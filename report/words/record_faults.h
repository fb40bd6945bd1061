// Finds what makes the answer of `memreplay record` bad.
#ifndef MEMREPLAY_REPORT_WORDS_RECORD_FAULTS_H_
#define MEMREPLAY_REPORT_WORDS_RECORD_FAULTS_H_

#include "proto/record.pb.h"

namespace memreplay {

// Adds to `faults` what the rest of the report shows: a script that failed, memory that ran out, a
// replay that differs.
void FindRecordFaults(proto::RecordReport* report);

}  // namespace memreplay

#endif  // MEMREPLAY_REPORT_WORDS_RECORD_FAULTS_H_
