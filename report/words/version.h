// The versions in reports.
#pragma once

namespace memreplay {

inline constexpr char kVersion[] = "0.2.0";
// The version of proto/report.proto; see docs/formats.md.
inline constexpr int kReportSchemaVersion = 4;

}  // namespace memreplay
