// Kinds of events in proto/trace.proto and in memory. They are matched by name, so that the numbers
// in files do not change when EventKind gets a new member.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "proto/trace.pb.h"
#include "trace/value/event.h"

namespace memreplay {

// Returns the number in files for each EventKind; UNKNOWN if the schema lacks one.
inline std::vector<file::Kind> FileKinds() {
  std::vector<file::Kind> kinds;
  for (int i = 0; i <= static_cast<int>(EventKind::kSnapshot); ++i) {
    std::string name(EventKindName(static_cast<EventKind>(i)));
    absl::AsciiStrToUpper(&name);
    file::Kind kind = file::UNKNOWN;
    file::Kind_Parse(name, &kind);
    kinds.push_back(kind);
  }
  return kinds;
}

// Returns the kind for each number in files; nullopt if there is none.
inline std::vector<std::optional<EventKind>> KindsInFile() {
  std::vector<std::optional<EventKind>> kinds(file::Kind_MAX + 1);
  const std::vector<file::Kind> numbers = FileKinds();
  for (size_t i = 0; i < numbers.size(); ++i) {
    if (numbers[i] != file::UNKNOWN) kinds[numbers[i]] = static_cast<EventKind>(i);
  }
  return kinds;
}

}  // namespace memreplay
