#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "cli/command.h"
#include "report/message/explain.h"
#include "report/text/render_explanation.h"
#include "tests/fuzz/targets.h"

namespace memreplay::fuzz {
namespace {

constexpr int kCommands = 15;

// In one piece, and in two: what is found must not hang on where a read ended.
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

// Every command that reads a file, in this process; what they print goes nowhere.
void Commands(std::string_view bytes) {
  if (bytes.empty()) return;
  static const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
  const int file = memfd_create("input", MFD_CLOEXEC);
  if (file < 0 || write(file, bytes.data() + 1, bytes.size() - 1) < 0) std::abort();
  const std::string path = "/proc/self/fd/" + std::to_string(file);
  const int out = dup(STDOUT_FILENO), err = dup(STDERR_FILENO);
  std::fflush(stderr);
  dup2(nowhere, STDOUT_FILENO);
  dup2(nowhere, STDERR_FILENO);
  absl::StatusOr<int> status = 0;
  switch (static_cast<uint8_t>(bytes[0]) % kCommands) {
    case 0: status = RunInspect({path}); break;
    case 1: status = RunInspect({path, "--deep", "--json"}); break;
    case 2: status = RunReplay({path, "--jobs", "1"}); break;
    case 3:
      status = RunReplay({path, "--conf", "expandable_segments:True", "--torch", "2.3"});
      break;
    case 4: status = RunReport({path, "-o", "/dev/null", "--conf", "max_split_size_mb:64"}); break;
    case 5: status = RunOom({path, "--jobs", "1"}); break;
    case 6:
      status = RunSweep({path, "--conf", "expandable_segments:True", "--conf", "", "--jobs", "1"});
      break;
    case 7: status = RunConvert({path, "/dev/null", "--to", "torch_snapshot_pickle"}); break;
    case 8: status = RunDiff({path, path}); break;
    case 9: status = RunConvert({path, "/dev/null", "--to", "perfetto"}); break;
    case 10: status = RunConvert({path, "/dev/null", "--to", "svg"}); break;
    case 11: status = RunConvert({path, "/dev/null", "--to", "protobuf"}); break;
    case 12: status = RunReplay({path, "--capacity", "1GiB", "--json"}); break;
    case 13: status = RunFit({path, "--jobs", "1"}); break;
    default: status = RunSynth({path}); break;
  }
  dup2(out, STDOUT_FILENO);
  dup2(err, STDERR_FILENO);
  close(out);
  close(err);
  close(file);
  if (status.ok() ? *status < 0 || *status > 2 : status.status().message().empty()) std::abort();
}

constexpr Target kTargets[] = {
    {"oom_message", Message},
    {"commands", Commands},
};

}  // namespace

absl::Span<const Target> CommandTargets() { return kTargets; }

}  // namespace memreplay::fuzz
