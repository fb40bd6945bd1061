// What the program and its reports call themselves.
#ifndef MEMREPLAY_REPORT_WORDS_VERSION_H_
#define MEMREPLAY_REPORT_WORDS_VERSION_H_

namespace memreplay {

inline constexpr char kVersion[] = "0.2.0";
// Of proto/report.proto; see docs/formats.md.
inline constexpr int kReportSchemaVersion = 4;

}  // namespace memreplay

#endif  // MEMREPLAY_REPORT_WORDS_VERSION_H_
