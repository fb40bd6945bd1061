// The versions in reports.
#ifndef MEMREPLAY_REPORT_WORDS_VERSION_H_
#define MEMREPLAY_REPORT_WORDS_VERSION_H_

namespace memreplay {

inline constexpr char kVersion[] = "0.2.0";
// The version of proto/report.proto; see docs/formats.md.
inline constexpr int kReportSchemaVersion = 4;

}  // namespace memreplay

#endif  // MEMREPLAY_REPORT_WORDS_VERSION_H_
