// The answer about one device in a sentence, as text and page show it.
#ifndef MEMREPLAY_REPORT_WORDS_ANSWER_H_
#define MEMREPLAY_REPORT_WORDS_ANSWER_H_

#include <cstdint>
#include <string>

#include "proto/report.pb.h"

namespace memreplay {

// Without a full stop. What is wrong besides: FindFaults() (verdict.h).
std::string AnswerSentence(const proto::DeviceReport& device);

// "default settings, device of 16.0 GiB".
std::string SettingsText(const proto::DeviceReport& device);

// " (-12.5 %)"; "" of 0.
std::string PercentChange(int64_t change, int64_t of);

}  // namespace memreplay

#endif  // MEMREPLAY_REPORT_WORDS_ANSWER_H_
