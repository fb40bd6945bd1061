// The names of the formats of trace files.
#pragma once

#include <string_view>

namespace memreplay {

// The name of a format in JSON and `convert --to`, and in a sentence.
struct FormatName {
  std::string_view id;     // Trace::format
  std::string_view title;  // "PyTorch snapshot (pickle)"
};

inline constexpr FormatName kFormatNames[] = {
    {"torch_snapshot_pickle", "PyTorch snapshot (pickle)"},
    {"torch_snapshot_json", "PyTorch snapshot (JSON)"},
    {"torch_snapshot_page", "PyTorch snapshot (page)"},
    {"protobuf", "memreplay protobuf"},
    {"flat_jsonl", "JSON lines"},
    {"program_text", "schedule (text proto)"},
    {"program_json", "schedule (JSON)"},
    {"op_log", "op log"},
    {"synth", "synthetic schedule"},
};

// Returns the title of a format, or its id if it has none.
constexpr std::string_view FormatTitle(std::string_view id) {
  for (const FormatName& name : kFormatNames) {
    if (name.id == id) return name.title;
  }
  return id;
}

}  // namespace memreplay
