// The diagnosis: what happened, what holds the memory, whether settings can help, what to do next.
#ifndef MEMREPLAY_REPORT_ASK_DIAGNOSIS_H_
#define MEMREPLAY_REPORT_ASK_DIAGNOSIS_H_

#include <string>

#include "proto/report.pb.h"

namespace memreplay {

// One or two sentences, from the figures of this report alone, so that they are of one and the same
// run. Where a replay does not agree with its recording, that comes first. `device` must have
// everything else, Categories included; "" of a run on a real GPU.
std::string DiagnosisOf(const proto::DeviceReport& device);

// Puts the diagnosis of each device into the report, once all else is in it. The text, the page,
// the JSON and Python show it from there.
void AddDiagnoses(proto::Report* report);

}  // namespace memreplay

#endif  // MEMREPLAY_REPORT_ASK_DIAGNOSIS_H_
