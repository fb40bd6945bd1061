// The facts of LayoutFacts by name, for the formats that store them.
#pragma once

#include <string_view>

#include "trace/value/trace.h"

namespace memreplay {

// A fact about the layout of a snapshot, by name.
struct LayoutField {
  std::string_view name;
  bool LayoutFacts::*field;
};

inline constexpr LayoutField kLayoutFields[] = {
    {"device_traces", &LayoutFacts::has_device_traces},
    {"allocator_settings", &LayoutFacts::has_allocator_settings},
    {"external_annotations", &LayoutFacts::has_external_annotations},
    {"time_us", &LayoutFacts::has_time_us},
    {"compile_context", &LayoutFacts::has_compile_context},
    {"user_metadata", &LayoutFacts::has_user_metadata},
    {"event_pool_id", &LayoutFacts::has_event_pool_id},
    {"block_history", &LayoutFacts::has_block_history},
    {"block_addresses", &LayoutFacts::has_block_addresses},
    {"is_expandable", &LayoutFacts::has_is_expandable},
    {"graph_capture_record_stream_reuse", &LayoutFacts::has_graph_capture_record_stream_reuse},
};

}  // namespace memreplay
