// Checks that the same input gives the same bytes, whatever the number of threads, and however
// often.
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tests/program.h"

namespace memreplay {
namespace {

class DeterminismTest : public Program {
 protected:
  // Runs a command on one processor, without random addresses where the system lets it, and then on
  // several, in processes that differ in the addresses with which Abseil and Protobuf seed their
  // hash tables.
  void ExpectOneAnswer(const std::string& command, const std::string& flags_of_one = "",
                       const std::string& flags_of_several = "") {
    SCOPED_TRACE(command);
    // The thread sanitizer, under which this test runs too, needs any amount of addresses.
    const std::string arguments = command + " --memory-limit 0";
    const Outcome one =
        Run(arguments + flags_of_one,
            "taskset -p -c 0 $$ >/dev/null; $(setarch -R true 2>/dev/null && echo setarch -R)");
    EXPECT_EQ(one.out.empty(), one.status == 2) << one.err;
    for (int round = 0; round < 10; ++round) {
      const Outcome several = Run(arguments + flags_of_several);
      EXPECT_EQ(several.status, one.status);
      ASSERT_EQ(several.out, one.out) << "round " << round;
      ASSERT_EQ(several.err, one.err) << "round " << round;
    }
  }
};

// A recording of steps of training in which much is equally large: passes, blocks, and what lines
// that have the same names in other files keep.
class Steps {
 public:
  explicit Steps(int batch) {
    for (int step = 0; step < 8; ++step) {
      const std::string of_step = std::to_string(step);
      for (int line = 1; line < 6; ++line) {
        Make("kept" + of_step + std::to_string(line), 1, {Frame("train.py", "step", line)});
      }
      Make("x", 3 + step * 7 % 8, Model(101));
      for (const std::string block : {"1", "2"}) {
        Make("t", 3 * batch, Block(1));
        Make("s" + block, 60 * batch, Block(1));
        Free("t");
        Make("r" + block, 2 * batch, Block(2));
      }
      for (const std::string block : {"2", "1"}) {
        Make("d" + block, 2 * batch, {});
        Free("r" + block);
        Make("e" + block, 60 * batch, {});
        Free("s" + block);
        Free("e" + block);
      }
      for (const std::string last : {"d2", "d1", "x"}) Free(last);
      Make("o", 2, {Frame("/x/torch/optim/adam.py", "step", 2), Frame("train.py", "step", 6)});
      Free("o");
    }
  }
  const std::string& text() const { return text_; }

 private:
  using Stack = std::vector<std::string>;

  static std::string Frame(const std::string& file, const std::string& name, int line) {
    return R"("file":")" + file + R"(","line":)" + std::to_string(line) + R"(,"name":")" + name +
           "\"";
  }
  static Stack Called(int line, const Stack& outer) {
    Stack frames = {Frame("model.py", "forward", line),
                    Frame("/x/torch/nn/modules/module.py", "_call_impl", 1),
                    Frame("/x/torch/nn/modules/module.py", "_wrapped_call_impl", 2)};
    frames.insert(frames.end(), outer.begin(), outer.end());
    return frames;
  }
  static Stack Model(int line) { return Called(line, {Frame("train.py", "step", 7)}); }
  static Stack Block(int line) { return Called(line, Model(100)); }

  uint64_t Number(const std::string& kind, const std::string& row) {
    const auto [found, is_new] = numbers_[kind].try_emplace(row, numbers_[kind].size() + 1);
    if (is_new) {
      text_ += R"({"k":")" + kind + R"(","i":)" + std::to_string(found->second) + "," + row + "}\n";
    }
    return found->second;
  }
  void Make(const std::string& name, int mib, const Stack& frames) {  // none: a thread of autograd
    std::string row;
    for (const std::string& frame : frames) {
      row += (row.empty() ? "" : ",") + std::to_string(Number("fr", frame));
    }
    const std::string stack =
        frames.empty() ? "" : ",\"st\":" + std::to_string(Number("st", "\"f\":[" + row + "]"));
    next_ += uint64_t{1} << 30;
    live_[name] = "\"addr\":" + std::to_string(next_) +
                  ",\"b\":" + std::to_string(int64_t{mib} << 20) + ",\"s\":0";
    text_ += R"({"k":"a",)" + live_[name] + stack + "}\n";
  }
  void Free(const std::string& name) {
    text_ += R"({"k":"f",)" + live_[name] + "}\n";
    text_ += R"({"k":"fx","a":"free_completed",)" + live_[name] + "}\n";
  }

  std::string text_ =
      R"({"k":"h","format":"memsched-flat","version":1,"unit":"B","streams":1,"devices":1,)"
      R"("recorded":true,"layout":["device_traces","time_us","block_addresses","is_expandable"]})"
      "\n"
      R"({"k":"dev"})"
      "\n";
  uint64_t next_ = uint64_t{1} << 44;
  std::map<std::string, std::map<std::string, uint64_t>> numbers_;  // by kind and row
  std::map<std::string, std::string> live_;
};

TEST_F(DeterminismTest, OneThreadAndSeveralSayTheSame) {
  std::string program = kSmallProgram;
  for (int i = 10; i < 400; ++i) {
    program += "{\"k\":\"a\",\"id\":" + std::to_string(i) +
               ",\"b\":" + std::to_string(1 + i * 7919 % 9000000) + "}\n";
    if (i % 3 != 0) program += "{\"k\":\"f\",\"id\":" + std::to_string(i) + "}\n";
  }
  for (int file = 0; file < 6; ++file) {
    Write("file" + std::to_string(file) + ".jsonl",
          program + "{\"k\":\"a\",\"id\":1000,\"b\":" + std::to_string(file * 1000000 + 1) + "}\n");
  }
  Write("recording.jsonl", kSmallRecording);
  const std::string files = "file0.jsonl file1.jsonl file2.jsonl file3.jsonl recording.jsonl";
  const std::vector<std::string> commands = {
      "replay " + files + " --json", "inspect --deep " + files, "oom " + files,
      "sweep file0.jsonl --json",    "fit file1.jsonl",         "report -o - file2.jsonl",
      "report -o - " + files,        "inspect recording.jsonl", "replay recording.jsonl --json"};
  // This sets --jobs, and the processors that the process may use, because some commands count
  // those.
  for (const std::string& command : commands) ExpectOneAnswer(command, " --jobs 1", " --jobs 2");
}

TEST_F(DeterminismTest, TheOrderOfAHashTableIsInNoAnswer) {
  Write("steps.jsonl", Steps(2).text());
  Write("out.jsonl",
        Steps(2).text() + R"({"k":"fx","a":"oom","b":1073741824,"s":0,"free":1048576})" + "\n");
  Write("more.jsonl", Steps(3).text());
  Write("small.jsonl", kSmallRecording);
  Write("message.txt",
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total "
        "capacity of 23.64 GiB of which 1.01 GiB is free. Including non-PyTorch memory, this "
        "process has 22.62 GiB memory in use. Of the allocated memory 20.05 GiB is allocated by "
        "PyTorch, and 2.11 GiB is reserved by PyTorch but unallocated.\n");
  Write("names.txtpb",
        "format: \"memsched\" version: 1 params { key: \"a b\" value: 1 }\n"
        "params { key: \"c d\" value: 1 } params { key: \"e f\" value: 1 }\n"
        "params { key: \"g h\" value: 1 }");
  Write("derived.txtpb",
        "format: \"memsched\" version: 1 derived { key: \"a b\" value: \"1\" }\n"
        "derived { key: \"c d\" value: \"1\" } derived { key: \"e f\" value: \"1\" }\n"
        "derived { key: \"g h\" value: \"1\" }");
  Write("with.txtpb",
        "format: \"memsched\" version: 1 procs { key: \"p\" value { } }\n"
        "program { call: \"p\" with { key: \"a\" value: \"1\" } with { key: \"b\" value: \"1\" }\n"
        "with { key: \"c\" value: \"1\" } with { key: \"d\" value: \"1\" } }");
  for (const std::string command : {"advise steps.jsonl",
                                    "advise steps.jsonl --json",
                                    "advise more.jsonl --card t4",
                                    "advise steps.jsonl=2 more.jsonl=3 --batch_size=? --card t4",
                                    "advise out.jsonl",
                                    "oom out.jsonl",
                                    "inspect --deep steps.jsonl small.jsonl",
                                    "inspect steps.jsonl --json",
                                    "replay steps.jsonl --json",
                                    "sweep steps.jsonl",
                                    "diff steps.jsonl more.jsonl",
                                    "sweep --together steps.jsonl more.jsonl",
                                    "report -o - steps.jsonl",
                                    "explain message.txt --json",
                                    "convert steps.jsonl - --to protobuf",
                                    "convert steps.jsonl - --to flat_jsonl",
                                    "convert steps.jsonl - --to torch_snapshot_pickle",
                                    "convert steps.jsonl - --to perfetto --slices",
                                    "convert steps.jsonl - --to csv",
                                    "convert steps.jsonl - --to svg",
                                    "replay names.txtpb",
                                    "replay derived.txtpb",
                                    "replay with.txtpb"}) {
    ExpectOneAnswer(command);
  }
}

}  // namespace
}  // namespace memreplay
