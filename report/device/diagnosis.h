// The diagnosis: what happened, what holds the memory, whether settings can help, what to do next.
#ifndef MEMREPLAY_REPORT_DEVICE_DIAGNOSIS_H_
#define MEMREPLAY_REPORT_DEVICE_DIAGNOSIS_H_

#include <string>

#include "proto/report.pb.h"

namespace memreplay {

// Returns one or two sentences from the figures of this report alone, so that they all describe the
// same run. If a replay does not agree with its recording, the diagnosis says that first. `device`
// must have everything else, including Categories; "" for a run on a real GPU.
std::string DiagnosisOf(const proto::DeviceReport& device);

// Puts the diagnosis of each device into the report, after everything else is in it. Text, page,
// JSON and Python all show it from there.
void AddDiagnoses(proto::Report* report);

}  // namespace memreplay

#endif  // MEMREPLAY_REPORT_DEVICE_DIAGNOSIS_H_
