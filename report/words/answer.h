// Words the answer about one device, as text and page show it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "proto/report.pb.h"
#include "report/words/lines.h"

namespace memreplay {

// Returns what happened, without a full stop. FindFaults() (verdict.h) says what is wrong with it.
std::string AnswerSentence(const proto::DeviceReport& device);

// Returns the lines that an answer begins with: the diagnosis (or AnswerSentence() for reports
// without one), what is wrong, and why its figures are uncertain or lower bounds.
std::vector<Line> AnswerLines(const proto::DeviceReport& device);

// Returns what to say about a file without devices; "" for other files.
std::string_view NothingLine(const proto::Report& report);

// Returns `conf`, or "default settings" if it is empty.
std::string SettingsName(std::string_view conf);
// Returns settings and device: "default settings, device of 16.0 GiB".
std::string SettingsText(const proto::DeviceReport& device);

// Returns what the recording says about its GPU's memory; "" if the driver refused nothing.
std::string CardSentence(const proto::Control& control);
// Returns what the control of a what-if gives, compared with the recording.
std::string ControlSentence(const proto::Control& control);
// Returns the same if it is more than 1 % off, else "".
std::string ControlWarning(const proto::Control& control);
// Returns the lines of AnswerLines() that say why the figures of a device are uncertain or lower
// bounds.
std::vector<Line> CaveatLines(const proto::DeviceReport& device);
// Returns "; 6.71 GiB with addresses in the other order", or "" if that is the same or 0.
std::string OtherOrderText(int64_t peak, int64_t other_order_peak);

// Returns whether the figures of a recording are lower bounds, because a part of the script's run
// is not in the file. Then nothing is known to fit. This is the only place that decides it.
bool IsLowerBound(const proto::Unseen& unseen);
// Returns "at least ", for use before what a surviving run takes, if that is a lower bound.
std::string_view AtLeast(const proto::Unseen& unseen, bool survives);
// Returns why figures are lower bounds; none if they are not.
std::vector<Line> UnseenLines(const proto::Unseen& unseen);

// Returns what the ranks of a job are compared by: reserved memory, or requested memory for written
// schedules that are not run.
int64_t ComparedBytes(const proto::Job::Row& row);

// Returns " (-12.5 %)"; "" for 0.
std::string PercentChange(int64_t change, int64_t of);

// Returns why a PyTorch release was chosen: "given" or "inferred: layout of 2.5 to 2.7
// (external_annotations, no compile_context); assumed to be 2.7". Does not read `why` itself.
std::string TorchReason(const proto::TorchProfileChoice& torch);

// --- Settings and their ranking. ---

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
