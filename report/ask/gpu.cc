#include "report/ask/gpu.h"

#include <algorithm>
#include <optional>

#include "report/answer/inventory.h"
#include "sim/workload/request_times.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

RunBackend BackendOf(const ReplaySettings& settings) {
  return settings.config.backend == Backend::kNative ? RunBackend::kNative : RunBackend::kAsync;
}

absl::Status InFile(const std::string& file, const absl::Status& status) {
  return absl::Status(status.code(), StrCat(file, ": ", ToStd(status.message())));
}

}  // namespace

// Adds the times of one repetition to those of all. Medians are of the repetition
// with most calls of that kind.
void GpuAsker::Merge(const std::vector<proto::GpuTime>& from, Times* to) {
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

absl::StatusOr<proto::DeviceReport> GpuAsker::Ask(const std::string& file, const Schedule& schedule,
                                                  const ReplaySettings& resolved,
                                                  ProgressSink* progress) {
  // This card's addresses, not those of the recording's: CUDA cards are driven on Linux.
  ReplaySettings settings = resolved;
  settings.order = AddressOrder::kChunksDownwards;
  const proto::RecordedPeaks recorded = DescribeContents(schedule).peaks;
  std::vector<int64_t> due;
  if (question_.at_recorded_pace) {
    due = RequestTimes(schedule);
    if (due.empty()) {
      return absl::InvalidArgumentError(
          StrCat(file, ": --pace recorded: the file has no times of its requests"));
    }
  }
  RunPlan plan;
  plan.schedule = &schedule;
  plan.settings = &settings;
  plan.backend = question_.backend.value_or(BackendOf(settings));

  GpuRunContext context;
  context.pace = question_.at_recorded_pace ? proto::GpuRun::recorded : proto::GpuRun::none;
  context.card = card_.Describe();
  const Bytes free(static_cast<uint64_t>(context.card.free_bytes()));
  const Bytes total =
      settings.capacity.value_or(Bytes(static_cast<uint64_t>(context.card.total_bytes())));
  const Bytes simulated_free = settings.capacity.value_or(free);
  progress->SetActivity(StrCat("predicting ", file));
  PlanStart(question_.start, total, simulated_free, &plan);
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
  const int64_t repetitions = question_.repetitions;
  for (int64_t i = 0; i < repetitions; ++i) {
    progress->SetActivity(
        StrCat("replaying ", file, " on ", context.card.name(),
               repetitions > 1 ? StrCat(", ", i + 1, " of ", repetitions) : std::string()));
    progress->SetTotal(schedule.requests().size());
    absl::StatusOr<DeviceRun> run = Measure(plan, due, &context, &taken);
    if (!run.ok()) return InFile(file, run.status());
    absl::StatusOr<MeasuredRun> held = HoldAgainst(plan, *predicted, *std::move(run));
    if (!held.ok()) return held.status();
    measured.push_back(*std::move(held));
  }
  context.times = std::move(taken.rows);
  return ReportGpu(plan, recorded, *predicted, measured, std::move(context));
}

absl::Status GpuAsker::MeasureCosts() {
  const absl::Status measured = card_.MeasureCosts();
  Merge(card_.TakeTimes(), &times_);
  return measured;
}

proto::GpuCosts GpuAsker::Costs() {
  proto::GpuCosts costs;
  const proto::GpuCard card = card_.Describe();
  costs.set_card(card.name());
  costs.set_driver(card.driver());
  for (const proto::GpuTime& time : times_.rows) *costs.add_times() = time;
  return costs;
}

// Whatever happens, everything is given back.
absl::StatusOr<DeviceRun> GpuAsker::Measure(const RunPlan& plan, const std::vector<int64_t>& due,
                                            GpuRunContext* context, Times* all_taken) {
  GpuSessionOptions session_options;
  session_options.capacity = plan.settings->capacity;
  session_options.by_ballast = question_.by_ballast;
  session_options.explicit_completion = CompletesExplicitly(*plan.schedule);
  session_options.verify = question_.verify;
  session_options.async = plan.backend == RunBackend::kAsync;
  auto session = card_.Start(session_options);
  if (!session.ok()) return session.status();
  context->card.set_capacity_bytes(plan.settings->capacity.value_or(Bytes()).signed_value());
  context->card.set_ballast_bytes((*session)->ballast().signed_value());
  card_.TakeTimes();  // those of getting ready

  const std::unique_ptr<Pacer> pacer = question_.make_pacer(**session, due);
  RunWatch watch = (*session)->Watch();
  ObserverList observers = {pacer.get(), watch.extra};
  watch.extra = &observers;
  watch.intervention = pacer.get();
  absl::StatusOr<DeviceRun> run = RunOnDevice(plan, (*session)->device(), std::move(watch));
  const std::vector<proto::GpuTime> taken = card_.TakeTimes();
  (*session)->AddVerification(&context->verification, &context->verify_faults);
  const absl::Status closed = (*session)->Close();
  if (!closed.ok()) return closed;
  if (!run.ok()) return run;
  if (const std::string by = pacer->stopped_by(); !by.empty()) {
    return absl::CancelledError(StrCat("stopped by ", by, " at request ", run->requests, " of ",
                                       plan.schedule->requests().size(),
                                       "; all memory was given back"));
  }
  proto::GpuRepetition& repetition = context->repetitions.emplace_back();
  repetition.set_wall_ns(pacer->taken_ns());
  for (const proto::GpuTime& time : taken) {
    repetition.set_driver_ns(repetition.driver_ns() + time.total_ns());
    repetition.set_driver_calls(repetition.driver_calls() + time.count());
  }
  Merge(taken, all_taken);
  Merge(taken, &times_);
  return run;
}

}  // namespace memreplay
