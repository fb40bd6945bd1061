// The answer about one device in a sentence, as text and page show it.
#ifndef MEMREPLAY_REPORT_WORDS_ANSWER_H_
#define MEMREPLAY_REPORT_WORDS_ANSWER_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "proto/report.pb.h"
#include "report/words/lines.h"

namespace memreplay {

// Returns what happened, without a full stop. FindFaults() (verdict.h) says what is wrong with it.
std::string AnswerSentence(const proto::DeviceReport& device);

// What an answer begins with: the diagnosis (of reports that have none, AnswerSentence()), what is
// wrong, and why its figures are uncertain or lower bounds.
std::vector<Line> AnswerLines(const proto::DeviceReport& device);

// What is said of a file without devices; "" of others.
std::string_view NothingLine(const proto::Report& report);

// `conf`, or "default settings" where it is empty.
std::string SettingsName(std::string_view conf);
// "default settings, device of 16.0 GiB".
std::string SettingsText(const proto::DeviceReport& device);

// What the recording says of its GPU's memory; "" if the driver refused nothing.
std::string CardSentence(const proto::Control& control);
// What the control of a what-if gives, compared with the recording.
std::string ControlSentence(const proto::Control& control);
// The same where it is more than 1 % off; else "".
std::string ControlWarning(const proto::Control& control);
// Why the figures of a device are uncertain or lower bounds; the part of AnswerLines() that says
// so.
std::vector<Line> CaveatLines(const proto::DeviceReport& device);
// "; 6.71 GiB with addresses in the other order", "" where that is the same or 0.
std::string OtherOrderText(int64_t peak, int64_t other_order_peak);

// "at least " before what a run takes that survives, where memory ran out in the recording: the
// program would have gone on.
std::string_view AtLeast(const proto::Unseen& unseen, bool survives);
// Why figures are lower bounds: what would have come after an out of memory, and, `with_start`,
// what came before the recording.
std::vector<Line> UnseenLines(const proto::Unseen& unseen, bool with_start = false);

// What the ranks of a job are compared by: what was reserved, or, of programs that are not
// run, requested.
int64_t ComparedBytes(const proto::Job::Row& row);

// " (-12.5 %)"; "" of 0.
std::string PercentChange(int64_t change, int64_t of);

}  // namespace memreplay

#endif  // MEMREPLAY_REPORT_WORDS_ANSWER_H_
