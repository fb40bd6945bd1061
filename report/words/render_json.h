// Report -> JSON: protobuf's mapping with the schema's own field names, every
// plain field printed, maps in key order. Equal reports give equal bytes.
#ifndef MEMREPLAY_REPORT_WORDS_RENDER_JSON_H_
#define MEMREPLAY_REPORT_WORDS_RENDER_JSON_H_

#include <string>

#include "proto/report.pb.h"

namespace memreplay {

enum class JsonLayout {
  kIndented,  // for people; ends with a newline
  kOneLine,   // one report per line; ends with a newline
};

std::string RenderJson(const google::protobuf::Message& report, JsonLayout layout);

// The table of `memreplay gpu --costs-out`, indented.
std::string RenderJson(const proto::GpuCosts& costs);

// The Value that Fidelity::first_divergence holds: the JSON mapping of
// `divergence`, or null.
google::protobuf::Value DivergenceValue(const proto::Divergence* divergence);

}  // namespace memreplay

#endif  // MEMREPLAY_REPORT_WORDS_RENDER_JSON_H_
