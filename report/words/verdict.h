// What makes an answer bad: the reasons behind exit status 1.
#ifndef MEMREPLAY_REPORT_WORDS_VERDICT_H_
#define MEMREPLAY_REPORT_WORDS_VERDICT_H_

#include <string>
#include <vector>

#include "proto/report.pb.h"

namespace memreplay {

// How a replay agrees with its recording, in half a sentence.
std::string FidelitySentence(const proto::DeviceReport& device);

// True where every event and final block that was compared agrees, and where none was.
bool IsReproduced(const proto::DeviceReport& device);

// Whether advice is what was asked of the device; elsewhere it is a part of the answer about out of
// memory.
bool AsksAdvice(const proto::DeviceReport& device);

// One sentence per reason, empty when the answer is good: the replay of a
// recording differs from it, memory ran out where the recording's did not, a
// request failed with an exception, a real device did otherwise than predicted, the
// input contradicts itself.
std::vector<std::string> FindFaults(const proto::DeviceReport& device);

// The one of them that is the verdict on an out of memory; empty: there is none.
std::string VerdictFault(const proto::DeviceReport& device);

// Puts the faults of each device into the report, once all else is in it. The text, the page, the
// JSON and the exit status have them from there.
void AddFaults(proto::Report* report);

// Of any device, as AddFaults() found them.
bool HasFaults(const proto::Report& report);

}  // namespace memreplay

#endif  // MEMREPLAY_REPORT_WORDS_VERDICT_H_
