#include "cli/io/processes.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <system_error>
#include <thread>
#include <utility>

#include "trace/value/strings.h"

namespace memreplay {
namespace {

// The memory needed to answer a file, in multiples of the file's size (docs/fleet.md).
constexpr uint64_t kMemoryPerByte = 6;

// The first byte of what a child writes.
constexpr char kReport = 'r';  // then the report, serialized
constexpr char kError = 'e';   // then the message

uint64_t FreeMemory() {
  std::ifstream file("/proc/meminfo");
  std::string word;
  uint64_t kib = 0;
  while (file >> word) {
    if (word == "MemAvailable:" && file >> kib) return kib * 1024;
  }
  return std::numeric_limits<uint64_t>::max();
}

void WriteAll(int pipe, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(pipe, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;  // the reader is gone
    text.remove_prefix(static_cast<size_t>(written));
  }
}

}  // namespace

Jobs ShareOut(size_t jobs, size_t files) {
  if (jobs == 0) jobs = std::max<size_t>(1, std::thread::hardware_concurrency());
  const size_t processes = std::clamp<size_t>(files, 1, jobs);
  return {processes, std::max<size_t>(1, jobs / processes)};
}

Processes::Processes(const std::vector<std::string>& files, Answer answer, size_t processes)
    : files_(files), answer_(answer), processes_(processes) {}

Processes::~Processes() {
  for (auto& [file, child] : children_) {
    if (child.pipe < 0) continue;
    close(child.pipe);
    kill(child.pid, SIGKILL);
    waitpid(child.pid, nullptr, 0);
  }
}

bool Processes::MayStart(size_t taking) const {
  if (next_ >= files_.size() || running_ >= processes_) return false;
  if (next_ >= taking + 2 * processes_) return false;
  if (running_ == 0) return true;
  std::error_code error;
  const uint64_t size = std::filesystem::file_size(files_[next_], error);
  return error || size < FreeMemory() / kMemoryPerByte;
}

absl::Status Processes::Start() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    return absl::InternalError(StrCat("cannot create a pipe to a process: ", std::strerror(errno)));
  }
  const pid_t pid = fork();
  if (pid < 0) {
    close(ends[0]);
    close(ends[1]);
    return absl::InternalError(StrCat("cannot start a process: ", std::strerror(errno)));
  }
  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGPIPE, SIG_IGN);
    close(ends[0]);
    const absl::StatusOr<proto::Report> report = answer_(files_[next_]);
    WriteAll(ends[1], report.ok() ? kReport + report->SerializeAsString()
                                  : kError + std::string(report.status().message()));
    _exit(0);  // without writing what the parent has buffered
  }
  close(ends[1]);
  children_[next_++] = {pid, ends[0], "", 0};
  ++running_;
  return absl::OkStatus();
}

void Processes::Wait() {
  std::vector<pollfd> waiting;
  std::vector<Child*> whose;
  for (auto& [file, child] : children_) {
    if (child.pipe < 0) continue;
    waiting.push_back({child.pipe, POLLIN, 0});
    whose.push_back(&child);
  }
  if (poll(waiting.data(), waiting.size(), -1) <= 0) return;
  for (size_t i = 0; i < waiting.size(); ++i) {
    if (waiting[i].revents == 0) continue;
    Child& child = *whose[i];
    char buffer[1 << 16];
    const ssize_t got = read(child.pipe, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got > 0) {
      child.written.append(buffer, static_cast<size_t>(got));
      continue;
    }
    close(child.pipe);
    child.pipe = -1;
    while (waitpid(child.pid, &child.status, 0) < 0 && errno == EINTR) {
    }
    --running_;
  }
}

absl::StatusOr<proto::Report> Processes::Read(size_t file) {
  const Child child = std::move(children_.extract(file).mapped());
  if (!child.written.empty() && child.status == 0) {
    if (child.written[0] == kError) return absl::InvalidArgumentError(child.written.substr(1));
    proto::Report report;
    if (report.ParseFromArray(child.written.data() + 1,
                              static_cast<int>(child.written.size() - 1))) {
      return report;
    }
  }
  return absl::InternalError(
      StrCat(files_[file], ": the process that read it ",
             WIFSIGNALED(child.status)
                 ? StrCat("was ended by signal ", WTERMSIG(child.status), " (",
                          strsignal(WTERMSIG(child.status)), ")")
                 : StrCat("gave no answer; its exit status was ", WEXITSTATUS(child.status))));
}

absl::StatusOr<proto::Report> Processes::Take(size_t file) {
  while (true) {
    while (MayStart(file)) {
      if (const absl::Status started = Start(); !started.ok()) {
        if (running_ > 0) break;  // later, when one has ended
        return started;
      }
    }
    const auto child = children_.find(file);
    if (child != children_.end() && child->second.pipe < 0) return Read(file);
    Wait();
  }
}

}  // namespace memreplay
