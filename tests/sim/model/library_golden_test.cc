// Compares what PyTorch's own compiled libraries did with small schedules (tests/data/conformance,
// written by tests/conformance/run --write-golden) with the model: every event, statistic, segment,
// block and refusal, release by release.
#include <dirent.h>
#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "sim/device/simulated_device.h"
#include "sim/model/caching_allocator.h"
#include "sim/run/run.h"
#include "tests/golden.h"
#include "trace/formats/open_trace.h"
#include "trace/schedule/schedule.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

using google::protobuf::Value;

const std::string kFolder = "tests/data/conformance/";

std::vector<std::string> CaseNames() {
  std::vector<std::string> names;
  DIR* folder = opendir(kFolder.c_str());
  if (folder == nullptr) return names;
  const std::string ending = ".expected";
  while (const dirent* entry = readdir(folder)) {
    const std::string file = entry->d_name;
    if (file.size() > ending.size() && file.ends_with(ending)) {
      names.push_back(file.substr(0, file.size() - ending.size()));
    }
  }
  closedir(folder);
  std::sort(names.begin(), names.end());
  return names;
}

const Value& Get(const Value& object, const std::string& key) {
  static const Value kNone;
  const auto& fields = object.struct_value().fields();
  const auto it = fields.find(key);
  return it == fields.end() ? kNone : it->second;
}

uint64_t Number(const Value& object, const std::string& key) {
  return static_cast<uint64_t>(Get(object, key).number_value());
}

// Prints one line per event, in the words of PyTorch's trace.
std::string EventLine(std::string_view action, uint64_t address, uint64_t size, uint64_t stream) {
  return StrCat(action, " ", address, " ", size, " on ", stream);
}

std::string BlockLine(uint64_t address, uint64_t size, uint64_t requested, std::string_view state) {
  return StrCat("block ", address, " ", size, " requested ", requested, " ", state);
}

std::string SegmentLine(uint64_t address, uint64_t size, uint64_t stream, std::string_view type,
                        uint64_t pool_first, uint64_t pool_second, bool expandable) {
  return StrCat("segment ", address, " ", size, " on ", stream, " ", type, " of ", pool_first, ",",
                pool_second, expandable ? " expandable" : "");
}

struct Answer {
  std::vector<std::string> events;
  std::vector<std::string> segments;
  std::map<std::string, int64_t> statistics;  // those that are not 0
  std::vector<uint64_t> errors;               // lines that PyTorch refuses, OutOfMemoryError aside
};

Answer Expected(const Value& golden) {
  Answer answer;
  for (const Value& event : Get(golden, "events").list_value().values()) {
    const std::string& action = Get(event, "action").string_value();
    answer.events.push_back(EventLine(action,
                                      Number(event, action == "oom" ? "device_free" : "addr"),
                                      Number(event, "size"), Number(event, "stream")));
  }
  for (const Value& segment : Get(golden, "segments").list_value().values()) {
    const auto& pool = Get(segment, "segment_pool_id").list_value().values();
    const bool has_pool = pool.size() == 2;
    answer.segments.push_back(
        SegmentLine(Number(segment, "address"), Number(segment, "total_size"),
                    Number(segment, "stream"), Get(segment, "segment_type").string_value(),
                    has_pool ? static_cast<uint64_t>(pool[0].number_value()) : 0,
                    has_pool ? static_cast<uint64_t>(pool[1].number_value()) : 0,
                    Get(segment, "is_expandable").bool_value()));
    for (const Value& block : Get(segment, "blocks").list_value().values()) {
      answer.segments.push_back(BlockLine(Number(block, "address"), Number(block, "size"),
                                          Number(block, "requested_size"),
                                          Get(block, "state").string_value()));
    }
  }
  for (const auto& [name, value] : Get(golden, "statistics").struct_value().fields()) {
    answer.statistics[name] = static_cast<int64_t>(value.number_value());
  }
  for (const Value& error : Get(golden, "errors").list_value().values()) {
    answer.errors.push_back(Number(error, "line"));
  }
  return answer;
}

class Recorder final : public Observer {
 public:
  explicit Recorder(const Trace& trace) : trace_(trace) {}
  void OnEvent(const Event& event) override {
    if (IsRequest(event.kind) && event.kind != EventKind::kAlloc &&
        event.kind != EventKind::kFree) {
      return;
    }
    lines.push_back(EventLine(EventKindName(event.kind), event.address.value(), event.size.value(),
                              trace_.streams[event.stream].value()));
  }
  std::vector<std::string> lines;

 private:
  const Trace& trace_;
};

Answer Model(const std::shared_ptr<const Trace>& trace, const TorchProfile& profile) {
  const Schedule schedule = Schedule::Build(trace, 0);
  SimulatedDevice device(
      SimulatedDevice::Options{.capacity = trace->total_memory.value_or(GiB(80)),
                               .explicit_completion = trace->completion == Completion::kExplicit});
  AllocatorConfig config;
  const std::string conf = trace->settings.has_value() ? trace->settings->conf : "";
  ParseAllocatorConf(conf, profile, &config).IgnoreError();  // an outcome in PyTorch too
  CachingAllocatorOptions options;
  options.streams = trace->streams;
  options.pools = trace->pools;
  CachingAllocator allocator(profile, config, device, options);
  if (trace->memory_fraction.has_value()) {
    EXPECT_TRUE(allocator.SetMemoryFraction(*trace->memory_fraction).ok());
  }
  Recorder recorder(*trace);
  const RunResult run = Run(schedule, allocator, recorder);

  Answer answer;
  answer.events = recorder.lines;
  for (const SegmentInfo& segment : allocator.Segments()) {
    answer.segments.push_back(
        SegmentLine(segment.address.value(), segment.total_size.value(), segment.stream.value(),
                    segment.is_large ? "large" : "small", segment.pool_id.first,
                    segment.pool_id.second, segment.is_expandable));
    for (const BlockInfo& block : segment.blocks) {
      const char* state = block.state == BlockState::kAllocated     ? "active_allocated"
                          : block.state == BlockState::kPendingFree ? "active_pending_free"
                                                                    : "inactive";
      answer.segments.push_back(BlockLine(block.address.value(), block.size.value(),
                                          block.requested_size.value(), state));
    }
  }
  for (const auto& [name, value] : FlatStatistics(allocator.statistics(), profile)) {
    if (value != 0) answer.statistics[name] = value;
  }
  for (const RequestFailure& failure : run.failures) {
    if (failure.is_out_of_memory) continue;
    answer.errors.push_back(failure.request + 2);  // the header is line 1; each line is a request
  }
  return answer;
}

class LibraryGolden : public testing::TestWithParam<std::string> {};

TEST_P(LibraryGolden, TheModelDoesTheSame) {
  absl::StatusOr<Trace> opened = OpenTrace(kFolder + GetParam() + ".jsonl");
  ASSERT_TRUE(opened.ok()) << opened.status();
  const auto trace = std::make_shared<const Trace>(*std::move(opened));
  Value answers;
  ASSERT_TRUE(google::protobuf::util::JsonStringToMessage(
                  ReadTestFile(kFolder + GetParam() + ".expected"), &answers)
                  .ok());
  int compared = 0;
  for (const Value& golden : answers.list_value().values()) {
    const Answer expected = Expected(golden);
    for (const Value& release : Get(golden, "torch").list_value().values()) {
      SCOPED_TRACE("torch " + release.string_value());
      const Answer model = Model(trace, **FindTorchProfile(release.string_value()));
      EXPECT_EQ(model.events, expected.events);
      EXPECT_EQ(model.segments, expected.segments);
      EXPECT_EQ(model.statistics, expected.statistics);
      EXPECT_EQ(model.errors, expected.errors);
      ++compared;
    }
  }
  EXPECT_GT(compared, 0);
}

std::string TestName(const testing::TestParamInfo<std::string>& param) {
  std::string name = param.param;
  std::replace_if(
      name.begin(), name.end(), [](char c) { return !std::isalnum(c); }, '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Cases, LibraryGolden, testing::ValuesIn(CaseNames()), TestName);

}  // namespace
}  // namespace memreplay
