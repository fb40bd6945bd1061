// Tests `memreplay gpu` from the outside, on the fake driver: what it prints, how it exits, and
// that nothing stays behind on the GPU.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>
#include <string>
#include <thread>
#include <vector>

#include "tests/golden.h"

namespace memreplay {
namespace {

// The schedule has equal cached blocks in two segments, small ones, and a request too large for
// what is cached.
constexpr char kProgram[] =
    R"({"k":"h","format":"memsched-flat","version":1,"unit":"B","streams":2,"devices":1}
{"k":"a","id":1,"b":41943040}
{"k":"a","id":2,"b":41943040}
{"k":"a","id":3,"b":1000}
{"k":"f","id":1}
{"k":"f","id":2}
{"k":"a","id":4,"b":31457280,"s":1}
{"k":"u","id":4,"s":0}
{"k":"a","id":5,"b":52428800}
{"k":"f","id":4}
{"k":"c"}
{"k":"a","id":6,"b":2097152}
{"k":"f","id":5}
)";

// Returns a recording with `gap_us` between the first two requests.
std::string Recording(int64_t gap_us) {
  const std::string second = std::to_string(1000 + gap_us);
  return R"({"k":"h","format":"memsched-flat","version":1,"unit":"B","streams":1,"devices":1,)"
         R"("recorded":true,"layout":["device_traces","time_us","block_addresses","is_expandable"]}
{"k":"dev","final":true}
{"k":"fx","a":"segment_alloc","addr":139637976727552,"b":20971520,"s":0,"ts":1000}
{"k":"a","addr":139637976727552,"b":8388608,"s":0,"ts":1000}
{"k":"a","addr":139637985116160,"b":4194304,"s":0,"ts":)" +
         second + R"(}
{"k":"seg","addr":139637976727552,"b":20971520,"s":0,"p":[0,0],"large":true}
{"k":"blk","addr":139637976727552,"b":8388608,"req":8388608,"state":"active_allocated"}
{"k":"blk","addr":139637985116160,"b":4194304,"req":4194304,"state":"active_allocated"}
{"k":"blk","addr":139637989310464,"b":8388608,"req":0,"state":"inactive"}
)";
}

class GpuTest : public testing::Test {
 protected:
  void SetUp() override {
    const std::filesystem::path root = std::filesystem::current_path();
    binary_ = (root / "cli/memreplay").string();
    directory_ = std::filesystem::path(testing::TempDir()) / "gpu_test";
    std::filesystem::remove_all(directory_);
    std::filesystem::create_directories(directory_ / "driver");
    std::filesystem::create_symlink(root / "tests/cuda/fake_driver/libfake_cuda.so",
                                    directory_ / "driver/libcuda.so.1");
    Write("program.jsonl", kProgram);
    Write("recording.jsonl", Recording(200'000));
    Write("slow.jsonl", Recording(600'000'000));
    std::filesystem::copy_file(root / "tests/data/snapshots/torch-2.15/expandable_oom.pickle",
                               directory_ / "expandable_oom.pickle");
    std::filesystem::copy_file(root / "tests/data/snapshots/torch-2.15/streams.pickle",
                               directory_ / "streams.pickle");
  }

  void Write(const std::string& name, const std::string& content) {
    std::ofstream(directory_ / name, std::ios::binary) << content;
  }
  std::string Read(const std::string& name) {
    std::ifstream file(directory_ / name, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  // Returns a piece of shell that runs `arguments` with the fake driver in its reach; `environment`
  // is as for env(1).
  std::string Command(const std::string& arguments, const std::string& environment = "") {
    return "cd '" + directory_.string() + "' && rm -f left.tmp && exec env LD_LIBRARY_PATH='" +
           (directory_ / "driver").string() + "' MEMREPLAY_FAKE_GPU_LEFT=left.tmp " + environment +
           " '" + binary_ + "' " + arguments + " >stdout.tmp 2>stderr.tmp </dev/null";
  }

  struct Outcome {
    int status = -1;
    std::string out;
    std::string err;
    std::string left;  // on the card
  };

  Outcome Finish(int status) {
    return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), Read("stdout.tmp"),
            Read("stderr.tmp"), Read("left.tmp")};
  }
  Outcome Run(const std::string& arguments, const std::string& environment = "") {
    return Finish(std::system(("( " + Command(arguments, environment) + "\n)").c_str()));
  }

  void ExpectSession(const std::string& name, const std::vector<std::string>& runs,
                     const std::string& environment = "") {
    std::string session;
    for (const std::string& arguments : runs) {
      const Outcome outcome = Run(arguments, environment);
      // A call that is unusable must not even look for a driver.
      if (outcome.status != 2 || !outcome.left.empty()) {
        EXPECT_EQ(outcome.left, "end\n") << arguments;
      }
      session += "$ memreplay " + arguments + "\n" + outcome.out;
      if (!outcome.err.empty()) session += "(stderr) " + outcome.err;
      session += "(exit " + std::to_string(outcome.status) + ")\n\n";
    }
    // Times are never the same, nor are their widths.
    session = std::regex_replace(session, std::regex(" +[0-9.]+ (ns|us|ms|s)\\b"), " TIME");
    ExpectGolden("tests/cli/golden/" + name + ".txt", session);
  }

  std::string binary_;
  std::filesystem::path directory_;
};

TEST_F(GpuTest, Confirms) {
  ExpectSession("gpu", {"gpu program.jsonl --verify", "gpu recording.jsonl --repeat 3",
                        "gpu program.jsonl --conf expandable_segments:True --torch 2.6",
                        "gpu streams.pickle"});
}

TEST_F(GpuTest, Backends) {
  ExpectSession("gpu_backends", {"gpu program.jsonl --backend direct --verify",
                                 "gpu program.jsonl --backend async --verify",
                                 "gpu program.jsonl --conf backend:cudaMallocAsync --torch 2.6"});
}

TEST_F(GpuTest, OutOfMemory) {
  ExpectSession("gpu_oom", {"gpu expandable_oom.pickle --capacity 100MiB",
                            "gpu expandable_oom.pickle --capacity 100MiB --capacity-by ballast",
                            "gpu program.jsonl --capacity 100MiB --backend direct",
                            "gpu expandable_oom.pickle"});
}

TEST_F(GpuTest, RefusesWhatDoesNotFit) {
  const Outcome outcome = Run("gpu program.jsonl", "MEMREPLAY_FAKE_GPU_BYTES=67108864");
  EXPECT_EQ(outcome.status, 2);
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(outcome.err,
            "memreplay: program.jsonl: too large for GPU 0 (Fictional GPU): the file needs 162 MiB "
            "(169,869,312 bytes) and the device has 64.0 MiB (67,108,864 bytes) free; memory would "
            "run out at request 1; nothing was allocated\n");
  EXPECT_EQ(outcome.left, "end\n");
}

TEST_F(GpuTest, SaysWhatIsMissing) {
  std::filesystem::create_directories(directory_ / "nothing");
  Outcome outcome = Run("gpu program.jsonl", "LD_LIBRARY_PATH=nothing");
  EXPECT_EQ(outcome.status, 2);
  EXPECT_EQ(outcome.err.rfind("memreplay: gpu: no CUDA driver: the library libcuda.so.1 ", 0), 0u)
      << outcome.err;
  outcome = Run("gpu program.jsonl", "MEMREPLAY_FAKE_GPU_GPUS=0");
  EXPECT_EQ(outcome.status, 2);
  EXPECT_NE(outcome.err.find("finds no GPU"), std::string::npos) << outcome.err;
  ExpectSession(
      "gpu_unusable",
      {"gpu program.jsonl --gpu 1", "gpu", "gpu program.jsonl --repeat 0",
       "gpu program.jsonl --backend big", "gpu program.jsonl --pace recorded", "gpu no_such_file",
       "gpu program.jsonl --capacity 1TiB", "gpu program.jsonl --device 4"});
}

// Every kind of call fails once: the error names the call, and nothing stays behind.
TEST_F(GpuTest, FailuresOfTheDriverGiveEverythingBack) {
  for (const std::string call :
       {"cuMemAlloc", "cuMemFree", "cuMemAddressReserve", "cuMemCreate", "cuMemMap",
        "cuMemSetAccess", "cuMemUnmap", "cuMemRelease", "cuMemGetInfo", "cuLaunchKernel"}) {
    const bool is_segment = call == "cuMemAlloc" || call == "cuMemFree";
    const std::string arguments = std::string("gpu program.jsonl --verify --conf ") +
                                  (is_segment ? "''" : "expandable_segments:True");
    constexpr char kLaunchFailed[] = "719";
    const Outcome outcome =
        Run(arguments, "MEMREPLAY_FAKE_GPU_FAIL=" + call + ":2:" + kLaunchFailed);
    EXPECT_EQ(outcome.status, 2) << call << "\n" << outcome.out;
    EXPECT_NE(outcome.err.find(call), std::string::npos) << outcome.err;
    EXPECT_EQ(outcome.left, "end\n") << call;
  }
}

TEST_F(GpuTest, VerifyFindsAPageThatIsThereTwice) {
  const std::string arguments = "gpu program.jsonl --verify --conf expandable_segments:True --json";
  const Outcome outcome = Run(arguments, "MEMREPLAY_FAKE_GPU_ALIAS=1");
  EXPECT_EQ(outcome.status, 1) << outcome.err;
  EXPECT_NE(outcome.out.find("\"bad_blocks\": 2"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("does not hold what it was filled with from byte 0 on"),
            std::string::npos);
  EXPECT_EQ(outcome.left, "end\n");
  EXPECT_EQ(Run(arguments).status, 0);
}

// PyTorch overcomes this refusal: no event shows it, the calls do.
TEST_F(GpuTest, ARefusalThatWasNotPredictedIsWrong) {
  constexpr char kOutOfMemory[] = "2";
  const Outcome outcome =
      Run("gpu program.jsonl", std::string("MEMREPLAY_FAKE_GPU_FAIL=cuMemAlloc:2:") + kOutOfMemory);
  EXPECT_EQ(outcome.status, 1) << outcome.err;
  EXPECT_NE(outcome.out.find("NOT CONFIRMED"), std::string::npos) << outcome.out;
  EXPECT_NE(
      outcome.out.find("PROBLEM: the device responds differently at request 1: predicted allocate "
                       "of 40.0 MiB, segment 1"),
      std::string::npos)
      << outcome.out;
  EXPECT_EQ(outcome.left, "end\n");
}

TEST_F(GpuTest, SignalsGiveEverythingBack) {
  for (const int signal : {SIGINT, SIGTERM}) {
    const std::string command = Command("gpu slow.jsonl --pace recorded");
    const pid_t child = fork();
    if (child == 0) {
      execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
      _exit(127);
    }
    // The first request is served, and the second is ten minutes away.
    for (int i = 0; i < 12000 && Read("left.tmp") != "allocates\n"; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    ASSERT_EQ(kill(child, signal), 0);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    const Outcome outcome = Finish(status);
    EXPECT_EQ(outcome.status, 2);
    EXPECT_EQ(outcome.err, std::string("memreplay: slow.jsonl: stopped by ") +
                               (signal == SIGINT ? "SIGINT" : "SIGTERM") +
                               " at request 1 of 2; all memory was released\n");
    EXPECT_EQ(outcome.left, "end\n");
  }
}

TEST_F(GpuTest, KeepsTheRecordedPace) {
  const Outcome paced = Run("gpu recording.jsonl --pace recorded --json");
  EXPECT_EQ(paced.status, 0) << paced.err;
  std::smatch found;
  ASSERT_TRUE(std::regex_search(paced.out, found, std::regex("\"wall_ns\": ([0-9]+)")));
  EXPECT_GE(std::stoll(found[1]), 200'000'000);
}

TEST_F(GpuTest, WritesCosts) {
  const Outcome outcome = Run("gpu program.jsonl --costs-out costs.json");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  const std::string costs = Read("costs.json");
  EXPECT_NE(costs.find("\"card\": \"Fictional GPU\""), std::string::npos) << costs;
  EXPECT_NE(costs.find("\"call\": \"cuMemAlloc\""), std::string::npos);
  EXPECT_EQ(Run("gpu program.jsonl --costs-out no_such_directory/x").status, 2);
}

TEST_F(GpuTest, MeasuresCostsForSweep) {
  const Outcome measured = Run("gpu --costs-out costs.json", "MEMREPLAY_FAKE_GPU_BYTES=1073741824");
  EXPECT_EQ(measured.status, 0) << measured.err;
  EXPECT_EQ(measured.out, "");
  EXPECT_EQ(measured.left, "end\n");
  const std::regex dated("\"date\": \"20[0-9]{2}-[0-9]{2}-[0-9]{2}\"");
  EXPECT_TRUE(std::regex_search(Read("costs.json"), dated));
  for (const std::string conf : {"''", "expandable_segments:True"}) {
    const Outcome swept = Run("sweep program.jsonl --costs costs.json --conf " + conf);
    EXPECT_EQ(swept.status, 0) << swept.err;
    EXPECT_NE(swept.out.find("their time"), std::string::npos) << swept.out;
    EXPECT_NE(swept.out.find("as measured on Fictional GPU, driver 13.0, 20"), std::string::npos);
  }
  // A driver that fails gives no table, and everything was released.
  const Outcome broken = Run("gpu --costs-out -", "MEMREPLAY_FAKE_GPU_FAIL=cuMemUnmap:3:999");
  EXPECT_EQ(broken.status, 2);
  EXPECT_NE(broken.err.find("cuMemUnmap"), std::string::npos) << broken.err;
  EXPECT_EQ(broken.left, "end\n");
  EXPECT_EQ(broken.out, "");
}

}  // namespace
}  // namespace memreplay
