// write_sample FORMAT FILE: writes the sample trace of trace_dump.h, for tests that other software
// can read what we write.
#include <fstream>
#include <iostream>

#include "tests/trace/support/trace_dump.h"
#include "trace/formats/write_trace.h"

int main(int argc, char** argv) {
  using namespace memreplay;  // NOLINT(google-build-using-namespace): a program of ours
  const TraceFormat* format = argc == 3 ? FindWritableFormat(argv[1]) : nullptr;
  if (format == nullptr) {
    std::cerr << "expected FORMAT FILE\n";
    return 2;
  }
  StringSink sink;
  const absl::Status status = format->write(testing::SnapshotTrace(), sink, nullptr);
  std::ofstream(argv[2], std::ios::binary) << sink.text();
  if (!status.ok()) std::cerr << status << "\n";
  return status.ok() ? 0 : 1;
}
