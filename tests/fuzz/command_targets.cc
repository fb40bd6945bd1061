#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <string>
#include <vector>

#include "cli/command.h"
#include "report/message/explain.h"
#include "report/text/render_explanation.h"
#include "tests/fuzz/mutated_recording.h"
#include "tests/fuzz/targets.h"

namespace memreplay::fuzz {
namespace {

// Reads the text in one piece and in two: what is found must not depend on where a read ended.
void Message(std::string_view bytes) {
  const absl::StatusOr<proto::Report> report = ExplainText(bytes);
  LogScan scan;
  scan.Add(bytes.substr(0, bytes.size() / 3));
  scan.Add(bytes.substr(bytes.size() / 3));
  const absl::StatusOr<proto::Report> again = Explain(&scan);
  if (report.ok() != again.ok()) std::abort();
  if (!report.ok()) return;
  const std::string text = RenderExplanationText(report->explanation());
  if (text != RenderExplanationText(again->explanation())) std::abort();
  if (report->explanation().actions_size() < 1 || report->explanation().actions_size() > 4) {
    std::abort();
  }
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < 0x20 && c != '\n') std::abort();
  }
}

// A file that is nowhere on a disk, and its name.
class MemoryFile {
 public:
  explicit MemoryFile(std::string_view bytes) : file_(memfd_create("input", MFD_CLOEXEC)) {
    if (file_ < 0 || write(file_, bytes.data(), bytes.size()) < 0) std::abort();
  }
  ~MemoryFile() { close(file_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  std::string path() const { return "/proc/self/fd/" + std::to_string(file_); }

 private:
  const int file_;
};

// Runs a command line in this process and drops what it prints.
void RunQuietly(const std::vector<std::string>& words) {
  static const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
  const int out = dup(STDOUT_FILENO), err = dup(STDERR_FILENO);
  std::fflush(stderr);
  dup2(nowhere, STDOUT_FILENO);
  dup2(nowhere, STDERR_FILENO);
  absl::StatusOr<int> status = absl::NotFoundError("");
  for (const Command& command : memreplay::Commands()) {
    if (command.name == words[0]) status = command.run({.args = {words.begin() + 1, words.end()}});
  }
  dup2(out, STDOUT_FILENO);
  dup2(err, STDERR_FILENO);
  close(out);
  close(err);
  if (status.ok() ? *status < 0 || *status > 2 : status.status().message().empty()) std::abort();
}

// The first byte chooses the command, and the rest is the file.
void Commands(std::string_view bytes) {
  if (bytes.empty()) return;
  const MemoryFile file(bytes.substr(1));
  const std::string path = file.path();
  const std::vector<std::string> lines[] = {
      {"inspect", path},
      {"inspect", path, "--deep", "--json"},
      {"replay", path, "--jobs", "1"},
      {"replay", path, "--conf", "expandable_segments:True", "--torch", "2.3"},
      {"report", path, "-o", "/dev/null", "--conf", "max_split_size_mb:64"},
      {"oom", path, "--jobs", "1"},
      {"sweep", path, "--conf", "expandable_segments:True", "--conf", "", "--jobs", "1"},
      {"convert", path, "/dev/null", "--to", "torch_snapshot_pickle"},
      {"diff", path, path},
      {"convert", path, "/dev/null", "--to", "perfetto"},
      {"convert", path, "/dev/null", "--to", "svg"},
      {"convert", path, "/dev/null", "--to", "protobuf"},
      {"replay", path, "--capacity", "1GiB", "--json"},
      {"fit", path, "--jobs", "1"},
      {"synth", path},
  };
  RunQuietly(lines[static_cast<uint8_t>(bytes[0]) % std::size(lines)]);
}

// Puts recordings and schedules with some of their numbers changed through every command in turn.
void Recordings(std::string_view bytes) {
  MutatedRecording made = MutateRecording(bytes);
  if (made.file.empty()) return;
  const MemoryFile file(made.file);
  std::replace(made.arguments.begin(), made.arguments.end(), std::string("FILE"), file.path());
  RunQuietly(made.arguments);
}

constexpr Target kTargets[] = {
    {"oom_message", Message},
    {"commands", Commands},
    {"recordings", Recordings},
};

}  // namespace

absl::Span<const Target> CommandTargets() { return kTargets; }

}  // namespace memreplay::fuzz
