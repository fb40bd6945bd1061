// What holds for every format that memreplay reads and writes. A test of a format has these lines:
//
//   constexpr TraceFormat kFormat = {ReadFlatJsonl, WriteFlatJsonl, "line "};
//   INSTANTIATE_TEST_SUITE_P(FlatJsonl, FormatContractTest, ::testing::Values(kFormat));
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "absl/status/statusor.h"
#include "trace/bytes/byte_sink.h"
#include "trace/bytes/byte_source.h"
#include "trace/value/trace.h"

namespace memreplay::testing {

struct TraceFormat {
  absl::StatusOr<Trace> (*read)(ByteSource& source);
  absl::Status (*write)(const Trace& trace, ByteSink& sink);
  const char* place;  // what errors begin with, unless they are of the whole file

  absl::StatusOr<Trace> Read(std::string bytes) const;
  std::string Write(const Trace& trace) const;
  std::string ErrorOf(std::string bytes) const;  // of reading them; "" if there is none
};

class FormatContractTest : public ::testing::TestWithParam<TraceFormat> {};

}  // namespace memreplay::testing
