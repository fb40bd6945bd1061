#include "tests/program.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <utility>

namespace memreplay {

const char kSmallRecording[] =
    R"({"k":"h","format":"memsched-flat","version":1,"unit":"B","streams":1,"devices":1,)"
    R"("recorded":true,"layout":["device_traces","time_us","block_addresses","is_expandable"]}
{"k":"dev","final":true}
{"k":"fx","a":"segment_alloc","addr":139637976727552,"b":2097152,"s":0}
{"k":"a","addr":139637976727552,"b":1000,"s":0}
{"k":"a","addr":139637976728576,"b":512,"s":0}
{"k":"f","addr":139637976727552,"b":1000,"s":0}
{"k":"fx","a":"free_completed","addr":139637976727552,"b":1000,"s":0}
{"k":"fx","a":"segment_alloc","addr":139637978824704,"b":20971520,"s":0}
{"k":"a","addr":139637978824704,"b":3145728,"s":0}
{"k":"seg","addr":139637976727552,"b":2097152,"s":0,"p":[0,0]}
{"k":"blk","addr":139637976727552,"b":1024,"req":1000,"state":"inactive"}
{"k":"blk","addr":139637976728576,"b":512,"req":512,"state":"active_allocated"}
{"k":"blk","addr":139637976729088,"b":2095616,"req":0,"state":"inactive"}
{"k":"seg","addr":139637978824704,"b":20971520,"s":0,"p":[0,0],"large":true}
{"k":"blk","addr":139637978824704,"b":3145728,"req":3145728,"state":"active_allocated"}
{"k":"blk","addr":139637981970432,"b":17825792,"req":0,"state":"inactive"}
)";

const char kSmallProgram[] =
    R"({"k":"h","format":"memsched-flat","version":1,"unit":"B","streams":1,"devices":1,"total":104857600}
{"k":"a","id":1,"b":31457280}
{"k":"a","id":2,"b":1000}
{"k":"f","id":1}
{"k":"a","id":3,"b":20971520}
{"k":"a","id":4,"b":15728640}
{"k":"c"}
{"k":"f","id":2}
{"k":"f","id":3}
{"k":"f","id":4}
)";

void Program::SetUp() {
  binary_ = std::filesystem::absolute("cli/memreplay").string();
  folder_ = std::filesystem::path(testing::TempDir()) /
            (std::string(testing::UnitTest::GetInstance()->current_test_info()->name()) +
             std::to_string(getpid()));
  std::filesystem::remove_all(folder_);
  std::filesystem::create_directories(folder_);
}

void Program::TearDown() {
  std::error_code error;
  std::filesystem::remove_all(folder_, error);
}

void Program::Write(const std::string& name, const std::string& content) {
  std::ofstream(folder_ / name, std::ios::binary) << content;
}

std::string Program::Read(const std::string& name) {
  std::ifstream file(folder_ / name, std::ios::binary);
  std::ostringstream content;
  content << file.rdbuf();
  return std::move(content).str();
}

std::vector<std::string> Program::Names() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
    const std::string name = entry.path().filename().string();
    if (name != "stdout.of.run" && name != "stderr.of.run") names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

Outcome Program::Run(const std::string& arguments, const std::string& before) {
  return Shell(before + "\nexec '" + binary_ + "' " + arguments);
}

Outcome Program::Shell(const std::string& shell) {
  const std::string command = "cd '" + folder_.string() + "' || exit 99\n{ " + shell +
                              "\n} >stdout.of.run 2>stderr.of.run </dev/null";
  const pid_t child = fork();
  if (child == 0) {
    execl("/bin/bash", "bash", "-c", command.c_str(), nullptr);
    _exit(98);
  }
  int status = 0;
  rusage usage = {};
  wait4(child, &status, 0, &usage);
  Outcome outcome;
  outcome.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  outcome.out = Read("stdout.of.run");
  outcome.err = Read("stderr.of.run");
  outcome.seconds = static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                    static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
  outcome.memory_kb = static_cast<uint64_t>(usage.ru_maxrss);
  return outcome;
}

void Program::ExpectDecent(const Outcome& outcome, const std::string& what) {
  EXPECT_LE(outcome.status, 2) << what << "\n" << outcome.err;
  if (outcome.status == 2) {
    EXPECT_TRUE(outcome.err.starts_with("memreplay: ")) << what << "\n" << outcome.err;
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << what << "\n"
                                                                           << outcome.err;
  }
}

}  // namespace memreplay
