// memreplay gpu FILE...
#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "cli/answer_file.h"
#include "cli/command.h"
#include "cli/device_flags.h"
#include "cli/flags.h"
#include "cli/gpu_card.h"
#include "cli/inputs.h"
#include "cli/output.h"
#include "cli/output_file.h"
#include "cli/replay_flags.h"
#include "cli/report_each.h"
#include "cli/stop_signal.h"
#include "report/answer/gpu_report.h"
#include "report/answer/inventory.h"
#include "report/words/render_json.h"
#include "sim/confirm/confirmation.h"
#include "sim/run/replay.h"
#include "sim/workload/request_times.h"
#include "trace/schedule/schedule.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

using Clock = std::chrono::steady_clock;

constexpr char kDescription[] =
    "Replays a file on a real GPU, with the same allocator code, and holds every decision\n"
    "against the simulation: predicted beside measured.\n"
    "\n"
    "A recording is replayed under its own settings, a program under its header's; flags\n"
    "override them. What does not fit the card is refused before anything is allocated.\n"
    "Ctrl-C gives all memory back. Needs NVIDIA's driver, but no CUDA toolkit.\n"
    "\n"
    "Exit status 1 tells of a decision or an answer of the device that the simulation\n"
    "does not reproduce even with the driver's addresses, and of a block that does not\n"
    "hold what it was filled with; 2 of a machine without a GPU and of an error of the\n"
    "driver.";

struct Options {
  SettingsRequest settings;
  std::string capacity_by = "limit";
  std::optional<std::string> backend;
  std::optional<int64_t> repeat;
  std::string pace = "none";
  std::string start = "recorded";
  std::optional<int64_t> card;
  std::optional<int64_t> trace_device;
  std::optional<std::string> costs_out;
  bool verify = false;
  bool json = false;
};

// Keeps the pace of a run and stops it where there is reason to.
class Conductor final : public Intervention, public Observer {
 public:
  Conductor(const GpuSession& session, const StopSignal& stop, const std::vector<int64_t>& times,
            Progress* progress)
      : session_(session), stop_(stop), times_(times), progress_(progress), start_(Clock::now()) {}

  Next BeforeRequest(size_t request, Allocator&, Observer&) override {
    if (request == 0) start_ = Clock::now();
    progress_->SetDone(request);
    if (request < times_.size()) WaitUntil(start_ + std::chrono::microseconds(times_[request]));
    return stop_.received() || !session_.status().ok() ? Next::kStop : Next::kApply;
  }
  void OnEvent(const Event&) override { end_ = Clock::now(); }

  std::chrono::nanoseconds taken() const { return std::max(end_, start_) - start_; }

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
  const std::vector<int64_t>& times_;  // empty: as fast as it goes
  Progress* progress_;
  Clock::time_point start_;
  Clock::time_point end_;
};

RunBackend BackendFor(const ReplaySettings& settings, const Options& options) {
  if (options.backend == "direct") return RunBackend::kDirect;
  if (options.backend == "async") return RunBackend::kAsync;
  if (options.backend == "native") return RunBackend::kNative;
  return settings.config.backend == Backend::kNative ? RunBackend::kNative : RunBackend::kAsync;
}

// Times of calls of the driver in the order in which kinds were first seen.
struct Times {
  std::vector<proto::GpuTime> rows;
  std::map<std::pair<std::string, int64_t>, size_t> row;  // by call and size
};

// Adds the times of one repetition to those of all. Medians are of the repetition
// with most calls of that kind.
void Merge(const std::vector<proto::GpuTime>& from, Times* to) {
  for (const proto::GpuTime& time : from) {
    const auto [it, is_new] =
        to->row.try_emplace(std::make_pair(time.call(), time.size()), to->rows.size());
    if (is_new) {
      to->rows.push_back(time);
      continue;
    }
    proto::GpuTime& same = to->rows[it->second];
    if (time.count() > same.count()) same.set_median_ns(time.median_ns());
    same.set_count(same.count() + time.count());
    same.set_refused(same.refused() + time.refused());
    same.set_total_ns(same.total_ns() + time.total_ns());
    same.set_min_ns(std::min(same.min_ns(), time.min_ns()));
    same.set_max_ns(std::max(same.max_ns(), time.max_ns()));
  }
}

class GpuReplay {
 public:
  GpuReplay(GpuCard& card, const Options& options, const StopSignal& stop)
      : card_(card), options_(options), stop_(stop) {}

  absl::StatusOr<proto::DeviceReport> Answer(const std::string& file,
                                             std::shared_ptr<const Trace> trace,
                                             size_t device_index, const ReplaySettings& settings,
                                             Progress* progress) {
    const proto::RecordedPeaks recorded = DescribeContents(*trace, device_index).peaks;
    const Schedule schedule = Schedule::Build(std::move(trace), device_index);
    std::vector<int64_t> times;
    if (options_.pace == "recorded") {
      times = RequestTimes(schedule);
      if (times.empty()) {
        return absl::InvalidArgumentError(
            StrCat(file, ": --pace recorded: the file has no times of its requests"));
      }
    }
    RunPlan plan;
    plan.schedule = &schedule;
    plan.settings = &settings;
    plan.backend = BackendFor(settings, options_);

    GpuRunContext context;
    context.pace = options_.pace == "recorded" ? proto::GpuRun::recorded : proto::GpuRun::none;
    context.card = card_.Describe();
    const Bytes free(static_cast<uint64_t>(context.card.free_bytes()));
    const Bytes total =
        settings.capacity.value_or(Bytes(static_cast<uint64_t>(context.card.total_bytes())));
    const Bytes simulated_free = settings.capacity.value_or(free);
    progress->SetActivity(StrCat("predicting ", file));
    PlanStart(options_.start == "fresh" ? StartPolicy::kFresh : StartPolicy::kRecorded, total,
              simulated_free, &plan);
    absl::StatusOr<DeviceRun> predicted = RunSimulated(plan, total, simulated_free);
    if (!predicted.ok()) return predicted.status();
    if (const auto shortage = FindShortage(plan, *predicted, free, settings.capacity,
                                           static_cast<uint64_t>(recorded.ooms()));
        shortage.has_value()) {
      return absl::ResourceExhaustedError(
          StrCat(file, ": too big for GPU ", context.card.index(), " (", context.card.name(),
                 "): ", ShortageSentence(plan, *shortage), "; nothing was allocated"));
    }

    Times taken;
    std::vector<MeasuredRun> measured;
    const int64_t repetitions = options_.repeat.value_or(1);
    for (int64_t i = 0; i < repetitions; ++i) {
      progress->SetActivity(
          StrCat("replaying ", file, " on ", context.card.name(),
                 repetitions > 1 ? StrCat(", ", i + 1, " of ", repetitions) : std::string()));
      progress->SetTotal(schedule.requests().size());
      absl::StatusOr<DeviceRun> run = Measure(plan, times, &context, &taken, progress);
      if (!run.ok()) return InCommand(file, run.status());
      absl::StatusOr<MeasuredRun> held = HoldAgainst(plan, *predicted, *std::move(run));
      if (!held.ok()) return held.status();
      measured.push_back(*std::move(held));
    }
    context.times = std::move(taken.rows);
    return ReportGpu(plan, recorded, *predicted, measured, std::move(context));
  }

  // Of calls made for nothing but their times.
  absl::Status MeasureCosts() {
    const absl::Status measured = card_.MeasureCosts();
    Merge(card_.TakeTimes(), &times_);
    return measured;
  }

  // Of everything measured so far.
  proto::GpuCosts Costs() {
    proto::GpuCosts costs;
    const proto::GpuCard card = card_.Describe();
    costs.set_card(card.name());
    costs.set_driver(card.driver());
    costs.set_date(absl::FormatTime("%Y-%m-%d", absl::Now(), absl::UTCTimeZone()));
    for (const proto::GpuTime& time : times_.rows) *costs.add_times() = time;
    return costs;
  }

 private:
  // Whatever happens, everything is given back.
  absl::StatusOr<DeviceRun> Measure(const RunPlan& plan, const std::vector<int64_t>& times,
                                    GpuRunContext* context, Times* all_taken, Progress* progress) {
    GpuSessionOptions session_options;
    session_options.capacity = plan.settings->capacity;
    session_options.by_ballast = options_.capacity_by == "ballast";
    session_options.explicit_completion = CompletesExplicitly(*plan.schedule);
    session_options.verify = options_.verify;
    session_options.async = plan.backend == RunBackend::kAsync;
    auto session = card_.Start(session_options);
    if (!session.ok()) return session.status();
    context->card.set_capacity_bytes(plan.settings->capacity.value_or(Bytes()).signed_value());
    context->card.set_ballast_bytes((*session)->ballast().signed_value());
    card_.TakeTimes();  // those of getting ready

    Conductor conductor(**session, stop_, times, progress);
    RunWatch watch = (*session)->Watch();
    ObserverList observers = {&conductor, watch.extra};
    watch.extra = &observers;
    watch.intervention = &conductor;
    absl::StatusOr<DeviceRun> run = RunOnDevice(plan, (*session)->device(), std::move(watch));
    const std::vector<proto::GpuTime> taken = card_.TakeTimes();
    (*session)->AddVerification(&context->verification, &context->verify_faults);
    const absl::Status closed = (*session)->Close();
    if (!closed.ok()) return closed;
    if (!run.ok()) return run;
    if (stop_.received()) {
      return absl::CancelledError(StrCat("stopped by ", stop_.name(), " at request ", run->requests,
                                         " of ", plan.schedule->requests().size(),
                                         "; all memory was given back"));
    }
    proto::GpuRepetition& repetition = context->repetitions.emplace_back();
    repetition.set_wall_ns(conductor.taken().count());
    for (const proto::GpuTime& time : taken) {
      repetition.set_driver_ns(repetition.driver_ns() + time.total_ns());
      repetition.set_driver_calls(repetition.driver_calls() + time.count());
    }
    Merge(taken, all_taken);
    Merge(taken, &times_);
    return run;
  }

  GpuCard& card_;
  const Options& options_;
  const StopSignal& stop_;
  Times times_;
};

absl::Status WriteCosts(const std::string& path, const Inputs& inputs,
                        const proto::GpuCosts& costs) {
  absl::StatusOr<OutputFile> file = OutputFile::Open(path, inputs.paths());
  if (!file.ok()) return file.status();
  file->Write(RenderJson(costs, JsonLayout::kIndented));
  return file->Close();
}

}  // namespace

absl::StatusOr<int> RunGpu(absl::Span<const std::string> args) {
  Options options;
  FlagSet flags("gpu FILE...|MODEL [flags]\n       memreplay gpu --costs-out FILE", kDescription);
  AddConfFlag(&flags, &options.settings.conf, "PYTORCH_CUDA_ALLOC_CONF to replay under");
  flags.AddOptionalText("torch", "VERSION", &options.settings.torch,
                        "PyTorch release whose allocator to run");
  flags.AddSize("capacity", &options.settings.capacity,
                "make the card have only this much memory, such as 12GiB");
  flags.AddChoice("capacity-by", {"limit", "ballast"}, &options.capacity_by,
                  "how: a limit refuses beyond it; a ballast takes the rest, so that the\n"
                  "driver itself refuses");
  flags.AddFraction("fraction", &options.settings.fraction,
                    "share of the memory that PyTorch may use, 0 to 1");
  flags.AddOptionalText("backend", "BACKEND", &options.backend,
                        "native (PyTorch's allocator), direct (no caching) or async (the\n"
                        "driver's pool, cudaMallocAsync); else as the settings say");
  flags.AddNumber("repeat", "N", &options.repeat, "replay so many times; tells the spread");
  flags.AddChoice("pace", {"none", "recorded"}, &options.pace,
                  "as fast as it goes, or each request when it was recorded");
  AddStartFlag(&options.start, &flags);
  flags.AddSwitch("verify", &options.verify,
                  "fill every block on the device with a pattern of its own and check it");
  flags.AddNumber("device", "N", &options.card, "the GPU to use: 0");
  flags.AddNumber("trace-device", "N", &options.trace_device, "only this device of the file");
  flags.AddOptionalText("costs-out", "FILE", &options.costs_out,
                        "write what calls of the driver cost, as JSON for sweep --costs; - is\n"
                        "standard output; without a FILE to replay, calls are made to measure it");
  AddJsonFlag(&options.json, &flags);
  absl::StatusOr<Inputs> inputs = Inputs::Split(args);
  if (!inputs.ok()) return InCommand("gpu", inputs.status());
  absl::StatusOr<std::vector<std::string>> names = flags.Parse(inputs->args());
  if (!names.ok()) return InCommand("gpu", names.status());
  if (flags.help_requested()) return PrintHelp(flags.Help());
  if (const absl::Status set = inputs->SetNames(*std::move(names)); !set.ok()) {
    return InCommand("gpu", set);
  }
  if (inputs->files().empty() && !options.costs_out.has_value()) {
    return absl::InvalidArgumentError("gpu: no FILE given; memreplay gpu --help tells more");
  }
  if (options.repeat.has_value() && *options.repeat < 1) {
    return absl::InvalidArgumentError(
        StrCat("gpu: --repeat: expected at least 1, found ", *options.repeat));
  }
  if (options.backend.has_value() && options.backend != "native" && options.backend != "direct" &&
      options.backend != "async") {
    return absl::InvalidArgumentError(
        StrCat("gpu: --backend: expected native, direct or async, found ", *options.backend));
  }

  const StopSignal stop;
  auto card = OpenGpuCard(static_cast<int>(options.card.value_or(0)));
  if (!card.ok()) return InCommand("gpu", card.status());
  GpuReplay replay(**card, options, stop);
  if (inputs->files().empty()) {
    if (const absl::Status measured = replay.MeasureCosts(); !measured.ok()) {
      return InCommand("gpu", measured);
    }
    if (const absl::Status written = WriteCosts(*options.costs_out, *inputs, replay.Costs());
        !written.ok()) {
      return written;
    }
    return kExitAnswered;
  }
  const absl::StatusOr<int> status = ReportEach(
      "gpu", inputs->files(), options.json ? ReportForm::kJson : ReportForm::kText, std::nullopt,
      [&](const std::string& file, size_t) -> absl::StatusOr<proto::Report> {
        if (stop.received()) return absl::CancelledError(StrCat(file, ": not begun"));
        Progress progress(StrCat("reading ", file));
        const absl::StatusOr<OpenedFile> opened = inputs->Open(file, options.settings);
        if (!opened.ok()) return opened.status();
        return ReportDevices("gpu", file, *opened->trace, options.trace_device, [&](size_t index) {
          return replay.Answer(file, opened->trace, index, opened->settings, &progress);
        });
      },
      Placement::kThisProcess);
  if (status.ok() && options.costs_out.has_value()) {
    if (const absl::Status written = WriteCosts(*options.costs_out, *inputs, replay.Costs());
        !written.ok()) {
      return written;
    }
  }
  return status;
}

}  // namespace memreplay
