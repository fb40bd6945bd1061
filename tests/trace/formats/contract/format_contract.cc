#include "tests/trace/formats/contract/format_contract.h"

#include <random>
#include <utility>

#include "tests/trace/support/trace_dump.h"

namespace memreplay::testing {

absl::StatusOr<Trace> TraceFormat::Read(std::string bytes) const {
  auto source = ByteSource::FromBytes(std::move(bytes));
  if (!source.ok()) return source.status();
  return read(**source);
}

std::string TraceFormat::Write(const Trace& trace) const {
  StringSink sink;
  const absl::Status status = write(trace, sink);
  EXPECT_TRUE(status.ok()) << status;
  return sink.text();
}

std::string TraceFormat::ErrorOf(std::string bytes) const {
  return std::string(Read(std::move(bytes)).status().message());
}

TEST_P(FormatContractTest, RandomTracesComeBackTheSame) {
  const TraceFormat& format = GetParam();
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    const Trace trace = RandomTrace(seed);
    const std::string bytes = format.Write(trace);
    const auto again = format.Read(bytes);
    ASSERT_TRUE(again.ok()) << again.status() << "\n" << bytes;
    ASSERT_EQ(DumpTrace(*again), DumpTrace(trace)) << bytes;
    EXPECT_EQ(format.Write(*again), bytes);
  }
}

TEST_P(FormatContractTest, DamagedInputNeverCrashes) {
  const TraceFormat& format = GetParam();
  std::mt19937_64 random(1);
  int readable = 0;
  for (int i = 0; i < 1500; ++i) {
    std::string bytes = format.Write(RandomTrace(random() % 50));
    for (uint64_t n = 1 + random() % 4; n > 0 && !bytes.empty(); --n) {
      const size_t at = random() % bytes.size();
      switch (random() % 4) {
        case 0: bytes[at] = static_cast<char>(random()); break;
        case 1: bytes.erase(at, 1 + random() % 8); break;
        case 2: bytes.insert(at, bytes.substr(random() % bytes.size(), random() % 20)); break;
        default: bytes.resize(at); break;
      }
    }
    const auto trace = format.Read(bytes);
    if (trace.ok()) {
      ++readable;
      format.Write(*trace);  // what is still readable is well formed
    } else if (!bytes.empty()) {
      const std::string error(trace.status().message());
      EXPECT_TRUE(error.starts_with(format.place) ||
                  error.starts_with("the trace is not well formed: "))
          << error;
    }
  }
  EXPECT_GT(readable, 0);
}

}  // namespace memreplay::testing
