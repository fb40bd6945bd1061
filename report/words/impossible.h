// Finds figures that no device can have.
#ifndef MEMREPLAY_REPORT_WORDS_IMPOSSIBLE_H_
#define MEMREPLAY_REPORT_WORDS_IMPOSSIBLE_H_

#include <string>

#include "proto/report.pb.h"

namespace memreplay {

// Returns the first simulated run of a report whose figures are impossible, as a sentence: more is
// allocated than reserved, or more is reserved than the device has. "" if all are possible.
// O(rows).
std::string ImpossibleFigures(const proto::DeviceReport& device);

}  // namespace memreplay

#endif  // MEMREPLAY_REPORT_WORDS_IMPOSSIBLE_H_
