// No command takes much more than twice as long for twice as much, on any axis.
#include <algorithm>
#include <cstdio>
#include <functional>

#include "tests/program.h"

namespace memreplay {
namespace {

constexpr uint64_t kBase = 0x7f0000000000;

std::string Number(uint64_t n) { return std::to_string(n); }

std::string Header(const std::string& more) {
  return "{\"k\":\"h\",\"format\":\"memsched-flat\",\"version\":1,\"unit\":\"B\"," + more + "}\n";
}

// A program of n allocations, all live at once, on `streams` streams.
std::string Allocations(uint64_t n, uint64_t streams, uint64_t size) {
  std::string text = Header("\"streams\":" + Number(streams));
  for (uint64_t i = 0; i < n; ++i) {
    text += "{\"k\":\"a\",\"id\":" + Number(i + 1) + ",\"b\":" + Number(size + i % 7) +
            ",\"s\":" + Number(i % streams) + "}\n";
  }
  for (uint64_t i = 0; i < n; ++i) text += "{\"k\":\"f\",\"id\":" + Number(i + 1) + "}\n";
  return text;
}

// n allocations, each with a stack of its own of `frames` frames.
std::string Stacks(uint64_t n, uint64_t frames) {
  std::string text = Header("\"streams\":1");
  for (uint64_t i = 1; i <= frames; ++i) {
    text += "{\"k\":\"fr\",\"i\":" + Number(i) + ",\"file\":\"model.py\",\"line\":" + Number(i) +
            ",\"name\":\"layer_" + Number(i) + "\"}\n";
  }
  for (uint64_t i = 1; i <= n; ++i) {
    text += "{\"k\":\"fr\",\"i\":" + Number(frames + i) +
            ",\"file\":\"train.py\",\"line\":" + Number(i) +
            ",\"name\":\"step\"}\n{\"k\":\"st\",\"i\":" + Number(i) + ",\"f\":[";
    for (uint64_t frame = 1; frame < frames; ++frame) text += Number(frame) + ",";
    text += Number(frames + i) + "]}\n{\"k\":\"a\",\"id\":" + Number(i) +
            ",\"b\":" + Number(512 * i) + ",\"st\":" + Number(i) + "}\n";
  }
  return text;
}

// A recording: on each device as many segments of as many blocks, in pools in turn.
std::string Recording(uint64_t devices, uint64_t segments, uint64_t blocks, uint64_t pools) {
  std::string text =
      Header("\"streams\":1,\"recorded\":true,\"devices\":" + Number(devices) +
             ",\"layout\":[\"device_traces\",\"time_us\",\"block_addresses\",\"is_expandable\"]");
  const uint64_t size = std::max<uint64_t>(2 << 20, 512 * blocks);
  const auto sized = [](uint64_t address, uint64_t bytes) {
    return ",\"addr\":" + Number(address) + ",\"b\":" + Number(bytes);
  };
  for (uint64_t device = 0; device < devices; ++device) {
    const std::string on = ",\"d\":" + Number(device) + "}\n";
    std::string state;
    text += "{\"k\":\"dev\",\"final\":true" + on;
    for (uint64_t segment = 0; segment < segments; ++segment) {
      const uint64_t base = kBase + segment * (size + (2 << 20));
      text += "{\"k\":\"fx\",\"a\":\"segment_alloc\"" + sized(base, size) + on;
      state += "{\"k\":\"seg\"" + sized(base, size) + ",\"s\":0,\"p\":[0," +
               Number(pools == 1 ? 0 : segment % pools + 1) + "]" + on;
      for (uint64_t block = 0; block < blocks; ++block) {
        text += "{\"k\":\"a\"" + sized(base + 512 * block, 512) + on;
        state += "{\"k\":\"blk\"" + sized(base + 512 * block, 512) +
                 ",\"req\":512,\"state\":\"active_allocated\"}\n";
      }
      if (size > 512 * blocks) {
        state += "{\"k\":\"blk\"" + sized(base + 512 * blocks, size - 512 * blocks) +
                 ",\"req\":0,\"state\":\"inactive\"}\n";
      }
    }
    text += state;
  }
  return text;
}

class DoublingTest : public Program {
 protected:
  // Four times as much takes four times as long, or 16 times if something is quadratic.
  void ExpectLinear(const std::string& axis, const std::string& command,
                    const std::function<Outcome(uint64_t)>& run, uint64_t n) {
    constexpr double kLeast = 0.03;  // starting takes time too
    double small = 1e9, large = 1e9;
    for (int round = 0; round < 3; ++round) {  // again only where others were in the way
      for (const bool is_large : {false, true}) {
        const Outcome outcome = run(is_large ? 4 * n : n);
        ASSERT_LE(outcome.status, 1) << axis << ", " << command << ": " << outcome.err;
        double& least = is_large ? large : small;
        least = std::min(least, outcome.seconds);
      }
      if (large < 6 * std::max(small, kLeast)) break;
    }
    const double ratio = large / std::max(small, kLeast);
    EXPECT_LT(ratio, 8) << axis << ", " << command << ": " << small << " and " << large << " s";
    std::printf("| %-24s | %-38s | %8llu | %5.2f s | x %4.1f |\n", axis.c_str(), command.c_str(),
                static_cast<unsigned long long>(n), small, ratio);
  }
  void ExpectLinear(const std::string& axis, uint64_t n,
                    const std::function<std::string(uint64_t)>& file) {
    Write("small", file(n));
    Write("large", file(4 * n));
    for (const std::string command :
         {"inspect --deep", "replay", "replay --conf expandable_segments:True",
          "report -o /dev/null", "oom", "convert --to protobuf"}) {
      ExpectLinear(
          axis, command,
          [&](uint64_t asked) {
            return Run(command + (asked == n ? " small" : " large") +
                       (command.starts_with("convert") ? " /dev/null" : ""));
          },
          n);
    }
  }
};

TEST_F(DoublingTest, Events) {
  ExpectLinear("events", 100000, [](uint64_t n) { return Allocations(n, 1, 512); });
}
TEST_F(DoublingTest, Streams) {
  ExpectLinear("streams", 8000, [](uint64_t n) { return Allocations(n, n, 512); });
}
TEST_F(DoublingTest, Segments) {
  ExpectLinear("segments", 25000, [](uint64_t n) { return Allocations(n, 1, 12 << 20); });
}
TEST_F(DoublingTest, SegmentsOfARecording) {
  ExpectLinear("segments of a recording", 20000, [](uint64_t n) { return Recording(1, n, 4, 1); });
}
TEST_F(DoublingTest, Pools) {
  ExpectLinear("pools", 15000, [](uint64_t n) { return Recording(1, n, 4, n); });
}
TEST_F(DoublingTest, Devices) {
  ExpectLinear("devices", 250, [](uint64_t n) { return Recording(n, 2, 50, 1); });
}
TEST_F(DoublingTest, BlocksOfASegment) {
  ExpectLinear("blocks of a segment", 80000, [](uint64_t n) { return Recording(1, 1, n, 1); });
}
TEST_F(DoublingTest, Stacks) {
  ExpectLinear("stacks", 15000, [](uint64_t n) { return Stacks(n, 10); });
}
TEST_F(DoublingTest, FramesOfAStack) {
  ExpectLinear("frames of a stack", 1500, [](uint64_t n) { return Stacks(500, n); });
}
TEST_F(DoublingTest, SettingsOfASweep) {
  Write("in", Allocations(3000, 1, 512));
  ExpectLinear(
      "settings", "sweep --conf ...",
      [&](uint64_t n) {
        std::string arguments = "sweep in";
        for (uint64_t i = 0; i < n; ++i) {
          arguments += " --conf max_split_size_mb:" + Number(21 + i);
        }
        return Run(arguments);
      },
      200);
}

}  // namespace
}  // namespace memreplay
