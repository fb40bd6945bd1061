// What --help says about each command above its flags: the texts of help/, each ending in a
// newline. help/fit_script.txt is kFitScriptHelp.
#pragma once

#include <string_view>

namespace memreplay {

extern const std::string_view kAdviseRecordingHelp;
extern const std::string_view kAdviseScriptHelp;
extern const std::string_view kCompletionHelp;
extern const std::string_view kConvertHelp;
extern const std::string_view kDiffHelp;
extern const std::string_view kExplainHelp;
extern const std::string_view kFitHelp;
extern const std::string_view kFitScriptHelp;
extern const std::string_view kGpuHelp;
extern const std::string_view kInspectHelp;
extern const std::string_view kLintHelp;
extern const std::string_view kOomHelp;
extern const std::string_view kRecordHelp;
extern const std::string_view kReplayHelp;
extern const std::string_view kReportHelp;
extern const std::string_view kSweepHelp;
extern const std::string_view kSweepScriptHelp;
extern const std::string_view kSynthHelp;
extern const std::string_view kSynthScheduleHelp;

}  // namespace memreplay
