#include "sim/observe/trace_recorder.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <memory>
#include <string>

#include "sim/recording/exact_replay.h"
#include "sim/recording/replay_settings.h"
#include "sim/study/what_if.h"
#include "trace/bytes/byte_sink.h"
#include "trace/formats/open_trace.h"
#include "trace/formats/torch/torch_snapshot.h"
#include "trace/schedule/schedule.h"

namespace memreplay {
namespace {

class FileOut final : public ByteSink {
 public:
  explicit FileOut(const std::string& path) : out_(path, std::ios::binary) {}
  absl::Status Append(std::string_view bytes) override {
    out_.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    return absl::OkStatus();
  }

 private:
  std::ofstream out_;
};

std::shared_ptr<const Trace> Open(const std::string& path) {
  absl::StatusOr<Trace> opened = OpenTrace(path);
  EXPECT_TRUE(opened.ok()) << opened.status();
  return std::make_shared<const Trace>(*std::move(opened));
}

// Simulated, written as a torch snapshot, read back and replayed as recorded:
// every event and block of the simulation comes out again.
void ExpectRoundTrip(const std::string& conf) {
  SCOPED_TRACE(conf);
  const std::string program = testing::TempDir() + "/program.jsonl";
  std::ofstream(program) << R"({"k":"h","format":"memsched-flat","version":1,"total":104857600}
{"k":"a","id":1,"b":1000}
{"k":"a","id":2,"b":31457280}
{"k":"a","id":3,"b":20971520,"s":1}
{"k":"f","id":2}
{"k":"a","id":4,"b":26214400}
{"k":"a","id":5,"b":94371840}
{"k":"f","id":4}
{"k":"c"}
{"k":"a","id":6,"b":5000000}
)";
  const std::shared_ptr<const Trace> source = Open(program);
  SettingsRequest request;
  request.conf = conf;
  const absl::StatusOr<ReplaySettings> settings = ResolveSettings(*source, request);
  ASSERT_TRUE(settings.ok()) << settings.status();
  TraceRecorder recorder;
  absl::StatusOr<WhatIfResult> run = ReplayWhatIf(Schedule::Build(source, 0), *settings, &recorder);
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_EQ(run->run.ooms, 1u);

  const std::string snapshot = testing::TempDir() + "/snapshot.pickle";
  {
    FileOut out(snapshot);
    const Trace recording =
        MakeRecording(*source, DescribeSettings(settings->config), settings->torch.profile->release,
                      {{0, recorder.TakeEvents(), run->segments}});
    ASSERT_TRUE(WriteTorchSnapshot(recording, out, nullptr).ok());
  }
  const std::shared_ptr<const Trace> recorded = Open(snapshot);
  EXPECT_EQ(recorded->torch_version, settings->torch.profile->release);
  const absl::StatusOr<ReplaySettings> again = ResolveSettings(*recorded, {});
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_TRUE(again->as_recorded);
  const Schedule schedule = Schedule::Build(recorded, 0);
  const ExactReplayResult replay = ReplayAsRecorded(schedule, again->config, *again->torch.profile);
  EXPECT_EQ(replay.exact_until_event, schedule.recorded().size()) << replay.exactness_reason;
  EXPECT_GT(schedule.recorded().size(), 10u);
}

TEST(TraceRecorder, WhatWasSimulatedIsReplayedExactly) {
  ExpectRoundTrip("");
  ExpectRoundTrip("expandable_segments:True");
  ExpectRoundTrip("max_split_size_mb:21");
}

}  // namespace
}  // namespace memreplay
