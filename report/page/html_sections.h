// What a page says of one device without any script: figures and tables.
#ifndef MEMREPLAY_REPORT_PAGE_HTML_SECTIONS_H_
#define MEMREPLAY_REPORT_PAGE_HTML_SECTIONS_H_

#include <string>

#include "proto/report.pb.h"

namespace memreplay {

// What happened and who holds the memory, in a sentence or two.
std::string Diagnosis(const proto::DeviceReport& device);
// The figures of the moment at which reserved memory peaks, and in one line what was replayed.
std::string KeyFigures(const proto::DeviceReport& device);
// The run next to those of --conf; "" without any.
std::string ComparisonTable(const proto::DeviceReport& device);
// Why memory ran out; "" where it did not.
std::string OutOfMemory(const proto::DeviceReport& device);
// The rest, each with a heading, those that there is something to say about.
std::string Tables(const proto::DeviceReport& device);

}  // namespace memreplay

#endif  // MEMREPLAY_REPORT_PAGE_HTML_SECTIONS_H_
