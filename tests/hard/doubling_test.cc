// Checks that no command takes more than eight times as long for four times as much, on any axis:
// four times is linear and 16 times quadratic. A cache that four times as much no longer fits into,
// with other tests on the same machine, makes up to six of the four.
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

// Returns a schedule of n allocations, all live at once, on `streams` streams.
std::string Allocations(uint64_t n, uint64_t streams, uint64_t size) {
  std::string text = Header("\"streams\":" + Number(streams));
  for (uint64_t i = 0; i < n; ++i) {
    text += "{\"k\":\"a\",\"id\":" + Number(i + 1) + ",\"b\":" + Number(size + i % 7) +
            ",\"s\":" + Number(i % streams) + "}\n";
  }
  for (uint64_t i = 0; i < n; ++i) text += "{\"k\":\"f\",\"id\":" + Number(i + 1) + "}\n";
  return text;
}

// Returns n allocations, each with a stack of its own of `frames` frames.
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

// Returns a recording in which each device has as many segments of as many blocks, in pools in
// turn.
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

// Returns a schedule in which n blocks are freed while one of `streams` other streams uses them,
// and n allocations and frees come before those streams are done, one by one.
std::string PendingFrees(uint64_t n, uint64_t streams) {
  std::string text = Header("\"streams\":" + Number(streams + 1) + ",\"completion\":\"explicit\"");
  for (uint64_t i = 1; i <= n; ++i) {
    const std::string id = "\"id\":" + Number(i);
    text += "{\"k\":\"a\"," + id + ",\"b\":512}\n{\"k\":\"u\"," + id +
            ",\"s\":" + Number(1 + i % streams) + "}\n{\"k\":\"f\"," + id + "}\n";
  }
  for (uint64_t i = 1; i <= n; ++i) {
    const std::string id = "\"id\":" + Number(n + i);
    text += "{\"k\":\"a\"," + id + ",\"b\":2097152}\n{\"k\":\"f\"," + id + "}\n";
    if (i % (n / streams) == 0) {
      text += "{\"k\":\"done\",\"s\":" + Number(1 + i / (n / streams) % streams) + "}\n";
    }
  }
  return text;
}

// Returns a recording of the same: n frees complete late, after n more allocations, or never.
std::string LateFrees(uint64_t n, bool complete) {
  std::string text =
      Header(R"("streams":1,"recorded":true,"devices":1,"layout":["device_traces","time_us",)"
             R"("block_addresses","is_expandable"])") +
      "{\"k\":\"dev\",\"final\":true,\"d\":0}\n";
  constexpr uint64_t kSegment = 2 << 20, kBlock = 512, kPer = kSegment / kBlock;
  const auto record = [](const std::string& kind, uint64_t address, uint64_t size) {
    return "{\"k\":\"" + kind + "\",\"addr\":" + Number(address) + ",\"b\":" + Number(size) +
           ",\"d\":0}\n";
  };
  const auto effect = [](const std::string& name, uint64_t address, uint64_t size) {
    return "{\"k\":\"fx\",\"a\":\"" + name + "\",\"addr\":" + Number(address) +
           ",\"b\":" + Number(size) + ",\"d\":0}\n";
  };
  const auto block = [](uint64_t i) { return kBase + i / kPer * kSegment + i % kPer * kBlock; };
  n = n / kPer * kPer;
  for (uint64_t i = 0; i < n; ++i) {
    if (i % kPer == 0) text += effect("segment_alloc", block(i), kSegment);
    text += record("a", block(i), kBlock);
  }
  for (uint64_t i = 0; i < n; ++i) text += record("f", block(i), kBlock);
  const uint64_t other = block(n);
  text += effect("segment_alloc", other, 20 << 20);
  for (uint64_t i = 0; i < n; ++i) {
    text += record("a", other, kSegment) + record("f", other, kSegment) +
            effect("free_completed", other, kSegment);
  }
  if (complete) {
    for (uint64_t i = 0; i < n; ++i) text += effect("free_completed", block(i), kBlock);
  }
  const auto segment = [](uint64_t address, uint64_t size) {
    return "{\"k\":\"seg\",\"addr\":" + Number(address) + ",\"b\":" + Number(size) +
           ",\"s\":0,\"p\":[0,0],\"d\":0}\n";
  };
  const auto in_state = [](uint64_t address, uint64_t size, const std::string& state) {
    return "{\"k\":\"blk\",\"addr\":" + Number(address) + ",\"b\":" + Number(size) +
           ",\"req\":" + Number(size) + ",\"state\":\"" + state + "\"}\n";
  };
  for (uint64_t i = 0; i < n; i += kPer) {
    text += segment(block(i), kSegment);
    if (complete) {
      text += in_state(block(i), kSegment, "inactive");
      continue;
    }
    for (uint64_t j = i; j < i + kPer; ++j) {
      text += in_state(block(j), kBlock, "active_pending_free");
    }
  }
  return text + segment(other, 20 << 20) + in_state(other, 20 << 20, "inactive");
}

// Returns a recording of n results of nn.Linear, each half as large as its weight and freed at
// once.
std::string Products(uint64_t n) {
  std::string text =
      Header(R"("streams":1,"recorded":true,"devices":1,"layout":["device_traces","time_us",)"
             R"("block_addresses","is_expandable"])");
  const char* const frames[][2] = {{"/torch/nn/modules/module.py", "convert"},
                                   {"train.py", "<module>"},
                                   {"/torch/nn/modules/linear.py", "forward"},
                                   {"/torch/nn/modules/module.py", "_call_impl"}};
  uint64_t frame = 0;
  for (const auto& [file, name] : frames) {
    text += "{\"k\":\"fr\",\"i\":" + Number(++frame) + ",\"file\":\"" + file +
            "\",\"line\":7,\"name\":\"" + name + "\"}\n";
  }
  text +=
      "{\"k\":\"st\",\"i\":1,\"f\":[1,2]}\n{\"k\":\"st\",\"i\":2,\"f\":[3,4,2]}\n"
      "{\"k\":\"dev\",\"final\":true,\"d\":0}\n";
  constexpr uint64_t kSegment = 2 << 20, kWeight = 4096, kResult = kWeight / 2;
  const auto at = [](uint64_t address, uint64_t bytes) {
    return "\"addr\":" + Number(address) + ",\"b\":" + Number(bytes);
  };
  const std::string result = at(kBase + kWeight, kResult) + ",\"d\":0";
  text += "{\"k\":\"fx\",\"a\":\"segment_alloc\"," + at(kBase, kSegment) + ",\"d\":0}\n" +
          "{\"k\":\"a\"," + at(kBase, kWeight) + ",\"d\":0,\"st\":1}\n";
  for (uint64_t i = 0; i < n; ++i) {
    text += "{\"k\":\"a\"," + result + ",\"st\":2}\n{\"k\":\"f\"," + result +
            "}\n{\"k\":\"fx\",\"a\":\"free_completed\"," + result + "}\n";
  }
  return text + "{\"k\":\"seg\"," + at(kBase, kSegment) +
         ",\"s\":0,\"p\":[0,0],\"d\":0}\n{\"k\":\"blk\"," + at(kBase, kWeight) +
         ",\"req\":" + Number(kWeight) + ",\"state\":\"active_allocated\"}\n{\"k\":\"blk\"," +
         at(kBase + kWeight, kSegment - kWeight) + ",\"req\":" + Number(kResult) +
         ",\"state\":\"inactive\"}\n";
}

class DoublingTest : public Program {
 protected:
  // Four times as much takes four times as long, or 16 times if something is quadratic.
  void ExpectLinear(const std::string& axis, const std::string& command,
                    const std::function<Outcome(uint64_t)>& run, uint64_t n) {
    constexpr double kMinSeconds = 0.01;  // starting takes time too
    constexpr double kMaxRatio = 8;
    double small = kMinSeconds, large = 1e9;
    const auto measure = [&](uint64_t asked) {
      const Outcome outcome = run(asked);
      EXPECT_LE(outcome.status, 1) << axis << ", " << command << ": " << outcome.err;
      return outcome.seconds;
    };
    for (int round = 0; round < 12; ++round) {  // again only where others were in the way
      large = std::min(large, measure(4 * n));
      if (large < kMaxRatio * kMinSeconds) break;  // and the small one does not matter
      const double seconds = std::max(measure(n), kMinSeconds);
      small = round == 0 ? seconds : std::min(small, seconds);
      if (large < 5 * small) break;
    }
    EXPECT_LT(large, kMaxRatio * small) << axis << ", " << command;
    std::printf("| %-24s | %-38s | %8llu | %5.2f s | x %4.1f |\n", axis.c_str(), command.c_str(),
                static_cast<unsigned long long>(n), small, large / small);
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
  ExpectLinear("events", 25000, [](uint64_t n) { return Allocations(n, 1, 512); });
}
TEST_F(DoublingTest, Streams) {
  ExpectLinear("streams", 2000, [](uint64_t n) { return Allocations(n, n, 512); });
}
TEST_F(DoublingTest, Segments) {
  ExpectLinear("segments", 6000, [](uint64_t n) { return Allocations(n, 1, 12 << 20); });
}
TEST_F(DoublingTest, SegmentsOfARecording) {
  ExpectLinear("segments of a recording", 5000, [](uint64_t n) { return Recording(1, n, 4, 1); });
}
TEST_F(DoublingTest, Pools) {
  ExpectLinear("pools", 4000, [](uint64_t n) { return Recording(1, n, 4, n); });
}
TEST_F(DoublingTest, Devices) {
  ExpectLinear("devices", 60, [](uint64_t n) { return Recording(n, 2, 50, 1); });
}
TEST_F(DoublingTest, BlocksOfASegment) {
  ExpectLinear("blocks of a segment", 20000, [](uint64_t n) { return Recording(1, 1, n, 1); });
}
TEST_F(DoublingTest, Stacks) {
  ExpectLinear("stacks", 4000, [](uint64_t n) { return Stacks(n, 10); });
}
TEST_F(DoublingTest, FramesOfAStack) {
  ExpectLinear("frames of a stack", 400, [](uint64_t n) { return Stacks(500, n); });
}
TEST_F(DoublingTest, PendingFreesOfOneStream) {
  ExpectLinear("pending frees of a stream", 10000, [](uint64_t n) { return PendingFrees(n, 1); });
}
TEST_F(DoublingTest, PendingFreesOfAsManyStreams) {
  ExpectLinear("streams that use a block", 2000, [](uint64_t n) { return PendingFrees(n, n); });
}
TEST_F(DoublingTest, LateFrees) {
  ExpectLinear("late frees", 8192, [](uint64_t n) { return LateFrees(n, true); });
}
TEST_F(DoublingTest, FreesThatNeverComplete) {
  ExpectLinear("frees never complete", 8192, [](uint64_t n) { return LateFrees(n, false); });
}
TEST_F(DoublingTest, ProductsThatAreFreedAtOnce) {
  ExpectLinear("products freed at once", 20000, Products);
}
TEST_F(DoublingTest, NestedNotes) {
  ExpectLinear("notes in one another", 20000, [](uint64_t n) {
    std::string text = Recording(1, 1, 8, 1);
    const auto note = [&text](const std::string& more) {
      text += "{\"k\":\"note\"," + more + "}\n";
    };
    note(R"("what":"forward","i":2,"n":"net")");
    for (uint64_t i = 0; i < n; ++i)
      note(R"("what":"module","i":2,"n":"a.)" + Number(i % 9) + "\"");
    for (uint64_t i = 0; i <= n; ++i) note(R"("what":"end","i":6)");
    return text;
  });
}
TEST_F(DoublingTest, RequestsThatAreRefused) {
  Write("small", Allocations(6000, 1, 65536));
  Write("large", Allocations(24000, 1, 65536));
  for (const std::string command : {"replay", "oom", "replay --conf expandable_segments:True"}) {
    ExpectLinear(
        "refused requests", command + " --capacity 30MiB",
        [&](uint64_t n) {
          return Run(command + (n == 6000 ? " small" : " large") + " --capacity 30MiB");
        },
        6000);
  }
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
      100);
}

}  // namespace
}  // namespace memreplay
