// Words settings and their ranking.
#pragma once

#include <string>
#include <string_view>

#include "proto/report.pb.h"

namespace memreplay {

// A share of reserved memory that is not worth a change of settings.
inline constexpr double kNegligibleGain = 0.02;

// Returns "expandable_segments:True, fraction 0.8" or "default settings".
std::string ConfName(std::string_view conf, double fraction);

// Returns "best of 66 settings: ..., peak reserved ... instead of ...; 3 more come to the same".
// `unseen` is that of the device.
std::string SweepSentence(const proto::Sweep& sweep, const proto::Unseen& unseen);

// Returns "needs 3.28 GiB under expandable_segments:True; 3.63 GiB under the current settings
// (...)".
std::string FitSentence(const proto::Fits& fits, const proto::Unseen& unseen);

}  // namespace memreplay
