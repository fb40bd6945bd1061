// Checks that several commands report the same about one file: it runs them as a user would and
// compares their common figures, on the project's recordings, and on public ones if
// MEMREPLAY_SHARED names their folder.
#include <google/protobuf/util/json_util.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "proto/report.pb.h"

namespace memreplay {
namespace {

using google::protobuf::util::MessageDifferencer;

proto::Report Ask(const std::string& command, const std::string& file) {
  const std::string line = "cli/memreplay " + command + " '" + file + "' --json 2>/dev/null";
  std::string json;
  std::FILE* pipe = popen(line.c_str(), "r");
  char buffer[1 << 16];
  for (size_t got = 0; (got = std::fread(buffer, 1, sizeof buffer, pipe)) > 0;) {
    json.append(buffer, got);
  }
  pclose(pipe);
  proto::Report report;
  const auto read = google::protobuf::util::JsonStringToMessage(json, &report);
  EXPECT_TRUE(read.ok()) << line << ": " << read.ToString();
  return report;
}

const proto::DeviceReport& DeviceOf(const proto::Report& report, int device) {
  for (const proto::DeviceReport& candidate : report.devices()) {
    if (candidate.device() == device) return candidate;
  }
  static const proto::DeviceReport nothing;
  ADD_FAILURE() << report.command() << " says nothing of device " << device;
  return nothing;
}

// Compares what every command reports about a device, whatever the question.
void ExpectSameFile(const proto::DeviceReport& expected, const proto::DeviceReport& found) {
  EXPECT_TRUE(MessageDifferencer::Equals(expected.torch(), found.torch()))
      << found.torch().DebugString();
  EXPECT_EQ(expected.events(), found.events());
  EXPECT_EQ(expected.recorded().peak_reserved_bytes(), found.recorded().peak_reserved_bytes());
  EXPECT_EQ(expected.recorded().ooms(), found.recorded().ooms());
}

// Compares what every command reports that replays the device as it was recorded.
void ExpectSameReplay(const proto::DeviceReport& expected, const proto::DeviceReport& found) {
  EXPECT_EQ(expected.conf(), found.conf());
  EXPECT_EQ(expected.exact_until_event(), found.exact_until_event());
  EXPECT_EQ(expected.exactness_reason(), found.exactness_reason());
  EXPECT_TRUE(MessageDifferencer::Equals(expected.fidelity(), found.fidelity()));
  EXPECT_TRUE(MessageDifferencer::Equals(expected.final_blocks(), found.final_blocks()));
  EXPECT_EQ(expected.peak_reserved_bytes(), found.peak_reserved_bytes());
  EXPECT_EQ(expected.peak_allocated_bytes(), found.peak_allocated_bytes());
  EXPECT_EQ(expected.ooms(), found.ooms());
}

// Compares what every command reports that changes something.
void ExpectSameBasis(const proto::DeviceReport& expected, const proto::DeviceReport& found) {
  EXPECT_TRUE(MessageDifferencer::Equals(expected.control(), found.control()))
      << found.control().DebugString();
  EXPECT_TRUE(MessageDifferencer::Equals(expected.unseen(), found.unseen()))
      << found.unseen().DebugString();
}

void ExpectAgreement(const std::string& file) {
  SCOPED_TRACE(file);
  const proto::Report inspect = Ask("inspect --deep", file);
  const proto::Report replay = Ask("replay", file);
  const proto::Report what_if = Ask("replay --conf=backend:native", file);
  const proto::Report sweep = Ask("sweep --conf=backend:native", file);
  const proto::Report fit = Ask("fit --conf=backend:native", file);
  const proto::Report oom = Ask("oom", file);
  const proto::Report page = Ask("report", file);
  ASSERT_EQ(inspect.devices_size(), replay.devices_size());
  for (const proto::DeviceReport& expected : replay.devices()) {
    SCOPED_TRACE(expected.device());
    const proto::DeviceReport& told = DeviceOf(inspect, expected.device());
    const proto::DeviceReport& changed = DeviceOf(what_if, expected.device());
    const proto::DeviceReport& swept = DeviceOf(sweep, expected.device());
    const proto::DeviceReport& fitted = DeviceOf(fit, expected.device());
    const proto::DeviceReport& examined = DeviceOf(oom, expected.device());
    const proto::DeviceReport& shown = DeviceOf(page, expected.device());
    for (const proto::DeviceReport* other : {&told, &changed, &swept, &fitted, &examined, &shown}) {
      SCOPED_TRACE(proto::Mode_Name(other->mode()));
      ExpectSameFile(expected, *other);
    }
    for (const proto::DeviceReport* other : {&swept, &fitted, &shown}) {
      SCOPED_TRACE(proto::Mode_Name(other->mode()));
      ExpectSameReplay(expected, *other);
    }
    if (!expected.fidelity().has_first_divergence() && expected.events() > 0) {
      EXPECT_EQ(told.loop().exact_until_event(), expected.exact_until_event());
      EXPECT_EQ(told.loop().exactness_reason(), expected.exactness_reason());
    }
    for (const proto::DeviceReport* other : {&swept, &fitted}) {
      ExpectSameBasis(changed, *other);
    }
    EXPECT_TRUE(MessageDifferencer::Equals(told.control(), swept.control()));
    if (expected.recorded().ooms() > 0) ExpectSameBasis(changed, examined);

    if (expected.events() == 0) {  // the final state is what is known, whatever the question
      for (const proto::DeviceReport* other : {&told, &examined, &swept, &shown}) {
        SCOPED_TRACE(proto::Mode_Name(other->mode()));
        EXPECT_EQ(other->peak_reserved_bytes(), expected.peak_reserved_bytes());
        EXPECT_EQ(other->peak_allocated_bytes(), expected.peak_allocated_bytes());
        EXPECT_EQ(other->peak_active_bytes(), expected.peak_active_bytes());
        EXPECT_EQ(other->peak_requested_bytes(), expected.peak_requested_bytes());
      }
      const proto::SweepRow& current = swept.sweep().current();
      EXPECT_EQ(current.peak_reserved_bytes(), expected.peak_reserved_bytes());
      EXPECT_EQ(current.peak_allocated_bytes(), expected.peak_allocated_bytes());
      EXPECT_EQ(expected.peak_allocated_bytes() > 0, told.inventory().final_allocated_bytes() > 0);
    }

    // The verdict, and what a device of one size does.
    EXPECT_EQ(examined.oom().verdict() != proto::Verdict::none, expected.recorded().ooms() > 0);
    EXPECT_EQ(shown.has_oom() ? shown.oom().verdict() : proto::Verdict::none,
              examined.oom().verdict());
    if (swept.sweep().rows_size() == 1 && swept.sweep().rows(0).refused().empty()) {
      EXPECT_EQ(swept.sweep().rows(0).peak_reserved_bytes(), changed.peak_reserved_bytes());
      EXPECT_EQ(swept.sweep().rows(0).ooms(), changed.ooms());
      EXPECT_EQ(swept.sweep().rows(0).device_calls(), changed.device_calls());
      EXPECT_EQ(swept.sweep().rows(0).other_order_peak_reserved_bytes(),
                changed.other_order_peak_reserved_bytes());
    }
    // Nothing can be tried on a device without events.
    EXPECT_EQ(swept.sweep().rows().empty(), expected.events() == 0);
    EXPECT_EQ(swept.sweep().current().peak_reserved_bytes(), swept.control().peak_reserved_bytes());
    EXPECT_EQ(swept.sweep().current().ooms(), swept.control().ooms());
  }
}

// Compares the peaks that inspect reads from the events with those of an exact replay, on the last
// events of a recording, as a ring keeps them.
void ExpectPeaksOfRings(const std::string& file, const std::vector<size_t>& sizes) {
  const std::string ring = testing::TempDir() + "ring.jsonl";
  const std::string line = "cli/memreplay convert '" + file + "' '" + ring + "' 2>/dev/null";
  ASSERT_EQ(std::system(line.c_str()), 0) << line;
  std::ifstream whole(ring);
  std::vector<std::string> lines;
  for (std::string text; std::getline(whole, text);) lines.push_back(text);
  const auto is_event = [](const std::string& text) {
    return text.starts_with(R"({"k":"a")") || text.starts_with(R"({"k":"f",)") ||
           text.starts_with(R"({"k":"fx")");
  };
  const auto events = static_cast<size_t>(std::count_if(lines.begin(), lines.end(), is_event));
  for (const size_t size : sizes) {
    if (size > events) break;
    SCOPED_TRACE(file + ", the last " + std::to_string(size));
    size_t lost = events - size;
    std::ofstream kept(ring);
    for (const std::string& text : lines) {
      if (lost > 0 && is_event(text)) {
        --lost;
      } else {
        kept << text << '\n';
      }
    }
    kept.close();
    const proto::Report inspect = Ask("inspect --deep", ring);
    const proto::Report replay = Ask("replay", ring);
    for (const proto::DeviceReport& exact : replay.devices()) {
      if (exact.fidelity().has_first_divergence() || exact.exact_until_event() < exact.events() ||
          exact.final_blocks().matched() < exact.final_blocks().compared()) {
        continue;
      }
      const proto::DeviceReport& told = DeviceOf(inspect, exact.device());
      EXPECT_EQ(told.recorded().peak_requested_bytes(), exact.peak_requested_bytes());
      EXPECT_EQ(told.recorded().peak_reserved_bytes(), exact.peak_reserved_bytes());
      for (const auto& bar : told.loop().error_bars()) {
        const int64_t peak = bar.figure() == "peak_allocated_bytes"   ? exact.peak_allocated_bytes()
                             : bar.figure() == "peak_active_bytes"    ? exact.peak_active_bytes()
                             : bar.figure() == "peak_requested_bytes" ? exact.peak_requested_bytes()
                                                                      : exact.peak_reserved_bytes();
        EXPECT_GE(peak, bar.low_bytes()) << bar.figure();
        if (bar.has_high()) {
          EXPECT_LE(peak, bar.high_bytes()) << bar.figure();
        }
      }
    }
  }
}

std::vector<std::string> RecordingsIn(const std::filesystem::path& folder) {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.path().extension() == ".pickle") files.push_back(entry.path().string());
  }
  std::sort(files.begin(), files.end());
  EXPECT_FALSE(files.empty());
  return files;
}

TEST(Commands, AgreeOnTheProjectsRecordings) {
  for (const std::string& file : RecordingsIn("tests/data/snapshots")) ExpectAgreement(file);
}

// A ring may begin with the completion of a free, and end before one.
TEST(Commands, AgreeOnTheLastEvents) {
  for (const std::string& file : RecordingsIn("tests/data/snapshots")) {
    ExpectPeaksOfRings(file, {1, 2, 3, 4, 5, 6, 7, 8, 13, 20, 21, 50, 100, 101, 400, 1000});
  }
}

TEST(Commands, AgreeOnPublicRecordings) {
  const char* shared = std::getenv("MEMREPLAY_SHARED");
  if (shared == nullptr) GTEST_SKIP() << "MEMREPLAY_SHARED is not set: no real snapshots here";
  for (const std::string& file :
       RecordingsIn(std::filesystem::path(shared) / "data" / "snapshots")) {
    ExpectAgreement(file);
    ExpectPeaksOfRings(file, {1, 3, 100, 1000});
  }
}

}  // namespace
}  // namespace memreplay
