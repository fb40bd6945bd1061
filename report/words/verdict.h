// Finds what makes an answer bad: the reasons behind exit status 1.
#pragma once

#include <string>
#include <vector>

#include "proto/report.pb.h"

namespace memreplay {

// Exit statuses of the program.
inline constexpr int kExitAnswered = 0;
inline constexpr int kExitBad = 1;       // there is an answer, and something is wrong
inline constexpr int kExitUnusable = 2;  // the input or the command line is unusable

// Returns how a replay agrees with its recording, in half a sentence.
std::string FidelitySentence(const proto::DeviceReport& device);

// Returns true if every compared event and final block agrees, or if none was compared.
bool IsReproduced(const proto::DeviceReport& device);

// Returns whether advice was the question about the device; otherwise advice is a part of the
// answer about out of memory.
bool AsksAdvice(const proto::DeviceReport& device);

// Returns whether the goal is reached as it is or with a change, or there is none.
bool AdviceFits(const proto::Advice& advice);
// Returns whether a row has figures, and a change that a user can make as it was made for them.
bool IsTried(const proto::Advice::Row& row);
// Returns whether a row is of a run whose peaks are not below those of the script as it is.
bool SavesNothing(const proto::Advice::Row& row, const proto::Advice& advice);

// Returns whether the goal may be reached: by what was recorded, of which the rest is unknown.
bool MaySurvive(const proto::Advice& advice);

// Returns one sentence per reason, none if the answer is good: the replay of a recording differs
// from it, memory ran out where the recording's did not, or may do so in what was not recorded, a
// request failed with an exception, a real device behaved differently than predicted, the input
// contradicts itself.
std::vector<std::string> FindFaults(const proto::DeviceReport& device);

// Returns the first simulated run of a report whose figures are impossible, as a sentence: more is
// allocated than reserved, or more is reserved than the device has. "" if all are possible.
// O(rows).
std::string ImpossibleFigures(const proto::DeviceReport& device);

// Returns the one of them that is the verdict on an out of memory; "" if there is none.
std::string VerdictFault(const proto::DeviceReport& device);

// Puts the faults of each device into the report, after everything else is in it. Text, page, JSON
// and exit status take them from there.
void AddFaults(proto::Report* report);

// Returns whether any device has faults, as AddFaults() found them.
bool HasFaults(const proto::Report& report);

}  // namespace memreplay
