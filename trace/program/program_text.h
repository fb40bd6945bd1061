// The two formats of a schedule program: text proto and protobuf's JSON.
#pragma once

#include <google/protobuf/text_format.h>

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "proto/schedule.pb.h"

namespace memreplay::program {

// A parsed program and the places of its parts.
struct ProgramText {
  proto::ScheduleProgram program;
  // The places of the fields; null for JSON, whose parser does not report them.
  std::unique_ptr<google::protobuf::TextFormat::ParseInfoTree> places;
};

// Returns the place of a field, or of the element `index` (-1: none) of one; a negative line if it
// is unknown. `places` may be null.
google::protobuf::TextFormat::ParseLocation LocationIn(
    const google::protobuf::TextFormat::ParseInfoTree* places,
    const google::protobuf::FieldDescriptor* field, int index);

// Parse a program. Error: InvalidArgument with line and column (of text).
absl::StatusOr<ProgramText> ParseProgramText(std::string_view text);
absl::StatusOr<ProgramText> ParseProgramJson(std::string_view text);

}  // namespace memreplay::program
