// The parts of a page about one device that need no JavaScript: figures and tables.
#pragma once

#include <string>

#include "proto/report.pb.h"

namespace memreplay {

// Returns what happened, why and what to do; what happened is never empty.
proto::Diagnosis Diagnosis(const proto::DeviceReport& device);
// Returns "FRAGMENTATION: ..."; "" if memory does not run out.
std::string OomHeadline(const proto::OutOfMemory& oom);
// Returns the figures at the peak of reserved memory, and one line about what was replayed.
std::string KeyFigures(const proto::DeviceReport& device);
// Returns the run next to those of --conf; "" without any.
std::string ComparisonTable(const proto::DeviceReport& device);
// Returns the best settings that were searched and lines to paste; "" if nothing was searched.
std::string SettingsSearch(const proto::DeviceReport& device);
// Returns why memory ran out; "" if it did not.
std::string OutOfMemory(const proto::DeviceReport& device);
// Returns the other sections that are not empty, each with a heading.
std::string Tables(const proto::DeviceReport& device);

}  // namespace memreplay
