// memreplay gpu FILE...
#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "cli/commands/command.h"
#include "cli/commands/file_command.h"
#include "cli/commands/gpu_card.h"
#include "cli/commands/help.h"
#include "cli/flags/flags.h"
#include "cli/flags/inputs.h"
#include "cli/flags/replay_flags.h"
#include "cli/io/output.h"
#include "record/stop_signal.h"
#include "report/ask/file_report.h"
#include "report/ask/gpu.h"
#include "report/words/render_json.h"
#include "sim/run/replay.h"
#include "trace/bytes/output_file.h"
#include "trace/schedule/schedule.h"
#include "trace/value/status_macros.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

using Clock = std::chrono::steady_clock;

struct GpuFlags {
  FileFlags file;
  std::string capacity_by = "limit";
  std::optional<std::string> backend;
  std::optional<int64_t> repeat;
  std::string pace = "none";
  std::string start = "recorded";
  std::optional<int64_t> card;
  std::optional<std::string> costs_out;
  bool verify = false;
};

// Keeps the pace of a run, and stops it where necessary.
class Conductor final : public Pacer {
 public:
  Conductor(const GpuSession& session, const StopSignal& stop, std::vector<int64_t> times,
            Progress* progress)
      : session_(session),
        stop_(stop),
        times_(std::move(times)),
        progress_(progress),
        start_(Clock::now()) {}

  Next BeforeRequest(size_t request, Allocator&, Observer&) override {
    if (request == 0) start_ = Clock::now();
    progress_->SetDone(request);
    if (request < times_.size()) WaitUntil(start_ + std::chrono::microseconds(times_[request]));
    return stop_.received() || !session_.status().ok() ? Next::kStop : Next::kApply;
  }
  void OnEvent(const Event&) override { end_ = Clock::now(); }

  int64_t taken_ns() const override {
    return std::chrono::nanoseconds(std::max(end_, start_) - start_).count();
  }
  std::string stopped_by() const override {
    return stop_.received() ? std::string(stop_.name()) : "";
  }

 private:
  void WaitUntil(Clock::time_point moment) const {
    constexpr std::chrono::milliseconds kPatience(20);
    while (!stop_.received()) {
      const auto left = moment - Clock::now();
      if (left <= Clock::duration::zero()) return;
      std::this_thread::sleep_for(std::min<Clock::duration>(left, kPatience));
    }
  }

  const GpuSession& session_;
  const StopSignal& stop_;
  const std::vector<int64_t> times_;  // empty: as fast as it goes
  Progress* progress_;
  Clock::time_point start_;
  Clock::time_point end_;
};

absl::Status WriteCosts(const std::string& path, const Inputs& inputs, proto::GpuCosts costs) {
  costs.set_date(absl::FormatTime("%Y-%m-%d", absl::Now(), absl::UTCTimeZone()));
  ASSIGN_OR_RETURN(OutputFile file, OutputFile::Open(path, inputs.paths()));
  file.Write(RenderJson(costs, JsonLayout::kIndented));
  return file.Close();
}

}  // namespace

absl::StatusOr<int> RunGpu(const CommandLine& line) {
  GpuFlags options;
  FlagSet flags("gpu FILE...|MODEL [flags]\n       memreplay gpu --costs-out FILE", kGpuHelp);
  AddConfFlag(&flags, &options.file.settings.conf, "PYTORCH_CUDA_ALLOC_CONF to replay under");
  AddTorchFlag(&options.file.settings.torch, &flags);
  AddCapacityFlag(
      &flags, &options.file.settings,
      "limit the GPU to this much memory, such as 12GiB, or to that of a smaller GPU by\n"
      "name, such as rtx-4090");
  flags.AddChoice(
      "capacity-by", {"limit", "ballast"}, &options.capacity_by,
      "how to limit it: limit rejects what exceeds the capacity; ballast occupies the rest, so\n"
      "that the driver itself rejects it");
  flags.AddFraction("fraction", &options.file.settings.fraction,
                    "share of the memory that PyTorch may use, from 0 to 1");
  flags.AddText("backend", "BACKEND", &options.backend,
                "native (PyTorch's allocator), direct (no caching) or async (the\n"
                "driver's pool, cudaMallocAsync); the default follows the settings");
  flags.AddNumber("repeat", "N", &options.repeat, "repeat the replay N times and report the spread",
                  1);
  flags.AddChoice("pace", {"none", "recorded"}, &options.pace,
                  "as fast as possible, or each request at its recorded time");
  AddStartFlag(&options.start, &flags);
  flags.AddSwitch("verify", &options.verify,
                  "fill every block on the device with a pattern of its own and check it");
  flags.AddNumber("gpu", "N", &options.card, "index of the GPU to use (default: 0)");
  AddDeviceFlag(&options.file.device, &flags);
  flags.AddText("costs-out", "FILE", &options.costs_out,
                "write the cost of driver calls, as JSON for sweep --costs; - is standard\n"
                "output. Without a FILE to replay, makes calls to measure it");
  AddJsonFlag(&options.file.json, &flags);
  ASSIGN_OR_RETURN(const std::optional<Inputs> parsed,
                   ParseInputs(line, "gpu", &flags, /*may_be_none=*/true));
  if (!parsed.has_value()) return kExitAnswered;
  const Inputs& inputs = *parsed;
  if (inputs.files().empty() && !options.costs_out.has_value()) return NoFile("gpu");
  const bool is_taken = options.costs_out.has_value() && IsStandardOutput(*options.costs_out);
  if (is_taken && !inputs.files().empty() && options.file.json) {
    return absl::InvalidArgumentError(
        "gpu: --json and --costs-out - cannot both write to standard output");
  }
  // The text of the report is not printed where the costs go to standard output.
  const ReportForm form = is_taken ? ReportForm::kNone : options.file.form();
  std::vector<std::string> outputs;
  if (!is_taken && !inputs.files().empty()) outputs.emplace_back("-");
  if (options.costs_out.has_value()) outputs.push_back(*options.costs_out);
  RETURN_IF_ERROR(CheckOutputs(outputs, inputs.paths()));
  if (options.backend.has_value() && options.backend != "native" && options.backend != "direct" &&
      options.backend != "async") {
    return InvalidArgument("gpu: --backend: expected native, direct or async, found ",
                           *options.backend);
  }

  const StopSignal stop;
  auto card = OpenGpuCard(static_cast<int>(options.card.value_or(0)));
  if (!card.ok()) return Within("gpu", card.status());
  Progress* progress = nullptr;  // of the file that is replayed
  GpuQuestion question;
  if (options.backend == "direct") question.backend = RunBackend::kDirect;
  if (options.backend == "async") question.backend = RunBackend::kAsync;
  if (options.backend == "native") question.backend = RunBackend::kNative;
  question.by_ballast = options.capacity_by == "ballast";
  question.at_recorded_pace = options.pace == "recorded";
  question.verify = options.verify;
  if (options.start == "fresh") question.start = StartPolicy::kFresh;
  question.repetitions = options.repeat.value_or(1);
  question.make_pacer = [&](const GpuSession& session, const std::vector<int64_t>& times) {
    return std::make_unique<Conductor>(session, stop, times, progress);
  };
  GpuAsker asker(**card, question);
  if (inputs.files().empty()) {
    if (const absl::Status measured = asker.MeasureCosts(); !measured.ok()) {
      return Within("gpu", measured);
    }
    RETURN_IF_ERROR(WriteCosts(*options.costs_out, inputs, asker.Costs()));
    return kExitAnswered;
  }
  const absl::StatusOr<int> status = ReportEach(
      "gpu", inputs.files(), form, std::nullopt,
      [&](const std::string& file, size_t) -> absl::StatusOr<proto::Report> {
        if (stop.received()) return absl::CancelledError(StrCat(file, ": not started"));
        Progress shown(StrCat("reading ", file));
        progress = &shown;
        ASSIGN_OR_RETURN(const OpenedFile opened, inputs.Open(file, options.file.settings));
        return AskDevices("gpu", file, opened, options.file.device,
                          [&](const Study& study) { return asker.Ask(file, study, &shown); });
      },
      Placement::kThisProcess);
  if (status.ok() && options.costs_out.has_value()) {
    RETURN_IF_ERROR(WriteCosts(*options.costs_out, inputs, asker.Costs()));
  }
  return status;
}

}  // namespace memreplay
