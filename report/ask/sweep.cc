#include "report/ask/sweep.h"

#include <algorithm>
#include <cmath>
#include <future>
#include <set>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_format.h"
#include "report/ask/replay.h"
#include "report/device/inventory.h"
#include "report/words/answer.h"
#include "report/words/sizes.h"
#include "report/words/stack_names.h"
#include "report/words/text.h"
#include "sim/settings/conf_tokens.h"
#include "sim/whatif/sweep.h"
#include "trace/value/launch.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

proto::PeakCause::Obstacle ObstacleOf(Obstacle obstacle) {
  switch (obstacle) {
    case Obstacle::kOtherPool: return proto::PeakCause::other_pool;
    case Obstacle::kOtherStream: return proto::PeakCause::other_stream;
    case Obstacle::kOversize: return proto::PeakCause::max_split_size;
    case Obstacle::kSplit: return proto::PeakCause::split;
    case Obstacle::kTooSmall: return proto::PeakCause::too_small;
    case Obstacle::kFits:
    case Obstacle::kCount: break;
  }
  return proto::PeakCause::fits;
}

constexpr size_t kSuggestions = 3;
// A gain in reserved memory that is not worth another key, or settings at all.
constexpr double kNegligible = kNegligibleGain;

bool MayGrowWithoutBound(const AllocatorConfig& config) {
  return config.expandable_segments && config.max_split_size != kUnlimited;
}

void AddCause(const PeakCause& cause, const Schedule& schedule, StackNames& names,
              proto::SweepRow* row) {
  if (!cause.known) return;
  proto::PeakCause& to = *row->mutable_cause();
  to.set_requested_bytes(cause.requested.signed_value());
  to.set_stream(static_cast<int64_t>(schedule.stream_handle(cause.stream).value()));
  to.set_main(ObstacleOf(cause.main()));
  *to.mutable_stack() = names.Of(cause.stack);
  to.set_event_index(-1);
  const RequestView requests = schedule.requests();
  for (size_t i = 0; cause.id != kNoAllocation && i < requests.size(); ++i) {
    const Event request = requests[i];
    if (request.kind != EventKind::kAlloc || request.id != cause.id) continue;
    to.set_event_index(static_cast<int64_t>(EventOfRequest(schedule, i)));
    break;
  }
  for (size_t i = 0; i < kObstacles; ++i) {
    const CachedBytes& cached = cause.cached[i];
    if (cached.blocks == 0) continue;
    proto::PeakCause::Cached& out = *to.add_cached();
    out.set_obstacle(ObstacleOf(static_cast<Obstacle>(i)));
    out.set_bytes(cached.bytes.signed_value());
    out.set_blocks(static_cast<int64_t>(cached.blocks));
    out.set_largest_bytes(cached.largest.signed_value());
    out.set_largest_address(static_cast<int64_t>(cached.largest_address.value()));
  }
}

void FillRow(const SweepRow& from, const SweepRow& current, const Schedule& schedule,
             proto::SweepRow* to) {
  to->set_conf(CleanText(from.conf));
  to->set_memory_fraction(from.fraction.value_or(0));
  to->set_needs_call(to->memory_fraction() != 0 && to->memory_fraction() != 1 &&
                     from.conf.find("per_process_memory_fraction") == std::string::npos);
  to->set_is_current(from.config == current.config && from.fraction == current.fraction);
  to->set_first_oom_event(-1);
  to->set_refused(CleanText(from.refused));
  if (!from.refused.empty()) return;
  to->set_oom(from.ooms > 0);
  to->set_ooms(static_cast<int64_t>(from.ooms));
  if (from.first_oom.has_value()) {
    to->set_first_oom_event(static_cast<int64_t>(EventOfRequest(schedule, *from.first_oom)));
  }
  to->set_peak_reserved_bytes(from.peak_reserved.signed_value());
  to->set_other_order_peak_reserved_bytes(from.other_order_peak_reserved.signed_value());
  to->set_peak_allocated_bytes(from.peak_allocated.signed_value());
  const Bytes reserved = from.at_peak.reserved();
  const Bytes unused = reserved - from.at_peak.allocated();
  to->set_reserved_minus_allocated_bytes(unused.signed_value());
  if (reserved != Bytes(0)) {
    to->set_fragmentation(static_cast<double>(unused.value()) /
                          static_cast<double>(reserved.value()));
  }
  to->set_alloc_retries(static_cast<int64_t>(from.alloc_retries));
  to->set_device_calls(static_cast<int64_t>(from.calls.total()));
  to->set_driver_seconds(from.call_nanoseconds / 1e9);
  auto& calls = *to->mutable_calls();
  calls.set_cuda_malloc(static_cast<int64_t>(from.calls.segment_allocs));
  calls.set_cuda_free(static_cast<int64_t>(from.calls.segment_frees));
  calls.set_map(static_cast<int64_t>(from.calls.maps));
  calls.set_unmap(static_cast<int64_t>(from.calls.unmaps));
  calls.set_synchronize(static_cast<int64_t>(from.calls.waits));
  for (std::string& risk : RisksOf(from.config, from.fraction)) to->add_risks(std::move(risk));
}

std::set<std::string> KeysOf(const std::string& conf, const TorchProfile& profile) {
  std::set<std::string> keys;
  for (const std::string& token : ConfTokens(conf, profile.conf_shared_parser)) {
    if (FindConfKey(token).has_value()) keys.insert(token);
  }
  return keys;
}

// Returns whether a row is better by enough to change settings.
bool IsBetter(const SweepRow& row, const SweepRow& than) {
  if (row.ooms != than.ooms) return row.ooms < than.ooms;
  const auto reserved = static_cast<double>(row.peak_reserved.value());
  const auto before = static_cast<double>(than.peak_reserved.value());
  if (std::abs(reserved - before) > kNegligible * before) return reserved < before;
  return row.alloc_retries < than.alloc_retries;
}

// Returns whether a row is as good. It ignores calls, because fewer of them do not justify another
// key.
bool IsAsGood(const SweepRow& row, const SweepRow& other) {
  return row.ooms <= other.ooms && row.alloc_retries <= other.alloc_retries &&
         static_cast<double>(row.peak_reserved.value()) <=
             (1 + kNegligible) * static_cast<double>(other.peak_reserved.value());
}

// Returns the rows worth suggesting: each is better than the current settings, has a set of keys of
// its own, and has no more keys than a row that is as good.
std::vector<const SweepRow*> Choose(const SweepAnswer& answer, const TorchProfile& profile) {
  std::vector<const SweepRow*> chosen;
  std::vector<std::set<std::string>> chosen_keys;
  const SweepRow& current = answer.current;
  for (const SweepRow& row : answer.rows) {
    if (chosen.size() == kSuggestions) break;
    if (!row.refused.empty() || MayGrowWithoutBound(row.config)) continue;
    if (row.config == current.config && row.fraction == current.fraction) continue;
    if (!IsBetter(row, current)) continue;
    const SweepRow* simplest = &row;
    size_t fewest = KeysOf(row.conf, profile).size();
    for (const SweepRow& other : answer.rows) {
      const size_t keys = KeysOf(other.conf, profile).size();
      if (keys < fewest && other.refused.empty() && !MayGrowWithoutBound(other.config) &&
          IsAsGood(other, row) && IsBetter(other, current)) {
        fewest = keys;
        simplest = &other;
      }
    }
    std::set<std::string> keys = KeysOf(simplest->conf, profile);
    if (absl::c_find(chosen_keys, keys) != chosen_keys.end()) continue;
    chosen_keys.push_back(std::move(keys));
    chosen.push_back(simplest);
  }
  return chosen;
}

std::string ShellQuoted(const std::string& text) {
  const bool plain = text.find_first_not_of(
                         "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                         "0123456789_:,.-") == std::string::npos;
  return plain ? text : StrCat("'", text, "'");
}

std::string Change(std::string_view noun, uint64_t now, uint64_t before) {
  const std::string count = FormatCount(static_cast<int64_t>(now));
  if (now == before) return StrCat(count, " ", noun, ", as now");
  return StrCat(count, " ", noun, " instead of ", FormatCount(static_cast<int64_t>(before)));
}

void Suggest(const SweepRow& row, const SweepRow& current, bool with_time,
             std::string_view variable, proto::Sweep::Suggestion* to) {
  to->add_lines(StrCat("export ", variable, "=", ShellQuoted(row.conf)));
  if (row.fraction.has_value() && row.fraction != current.fraction) {
    to->add_lines(StrCat("torch.cuda.set_per_process_memory_fraction(",
                         absl::StrFormat("%g", *row.fraction), ")  # at the start of the script"));
  }
  std::string cost = Change("driver calls", row.calls.total(), current.calls.total());
  if (with_time) {
    StrAppend(&cost, ", which take ", FormatDuration(std::llround(row.call_nanoseconds)),
              " instead of ", FormatDuration(std::llround(current.call_nanoseconds)));
  }
  if (row.alloc_retries + current.alloc_retries > 0) {
    StrAppend(&cost, "; ", Change("retries", row.alloc_retries, current.alloc_retries));
  }
  const int64_t blocks = row.peak_allocated.signed_value() - current.peak_allocated.signed_value();
  if (blocks != 0 && row.ooms == current.ooms) {
    StrAppend(&cost, "; ", FormatSizeChange(blocks), " in blocks at the peak");
  }
  to->set_cost(std::move(cost));
  for (std::string& risk : RisksOf(row.config, row.fraction)) to->add_risks(std::move(risk));
}

// The number of best rows that get error bars; few users look at more.
constexpr size_t kErrorBars = 3;

// What no settings change. Finding it takes as long as several replays.
struct Bounds {
  PeakLive live;
  Packing packing;
};

std::future<Bounds> SeekBounds(const Schedule& schedule, size_t threads) {
  return LaunchOn(threads, [&schedule] {
    const std::vector<Lifetime> lifetimes = LifetimesOf(schedule);
    return Bounds{PeakLiveOf(lifetimes), BestPacking(lifetimes)};
  });
}

void AddSweepWith(std::future<Bounds> sought, const Study& study, const SweepQuestion& question,
                  proto::DeviceReport* report) {
  const Schedule& schedule = study.schedule();
  const ReplaySettings on_card = study.OnCard(study.settings());
  SweepAnswer answer;
  const SweepContext context = {study,
                                on_card,
                                question.start,
                                question.threads,
                                question.costs != nullptr ? &question.costs->costs : nullptr,
                                question.progress};
  if (question.costs != nullptr) answer.costs_of = question.costs->card_text;
  answer.searched = question.confs.empty();
  if (answer.searched) {
    answer.rows = SearchConf(context);
    const auto in_force = absl::c_find_if(answer.rows, [&](const SweepRow& row) {
      return row.config == on_card.config && row.fraction == on_card.fraction;
    });
    answer.current = *in_force;
  } else {
    if (question.progress != nullptr) {  // for each, the current settings, and error bars
      question.progress->SetTotal(question.confs.size() + 2 +
                                  std::min(kErrorBars, question.confs.size()));
    }
    std::vector<Candidate> candidates;
    for (const std::string& conf : question.confs) candidates.push_back({conf, on_card.fraction});
    answer.rows = Sweep(context, candidates);
    absl::c_sort(answer.rows, RanksBefore);
    const auto same = absl::c_find_if(answer.rows, [&](const auto& row) {
      return row.refused.empty() && row.config == on_card.config &&
             row.fraction == on_card.fraction;
    });
    answer.current = same != answer.rows.end() ? *same : ReplayRow(context, on_card);
  }
  std::future<PeakCause> cause =
      LaunchOn(question.threads, [&] { return WhyReserved(context, answer.current); });
  std::vector<SweepRow*> barred = {&answer.current};
  for (size_t i = 0; i < std::min(kErrorBars, answer.rows.size()); ++i) {
    barred.push_back(&answer.rows[i]);
  }
  FindOtherOrder(context, barred);
  answer.current_cause = cause.get();
  const auto worst = std::find_if(answer.rows.rbegin(), answer.rows.rend(),
                                  [](const SweepRow& row) { return row.refused.empty(); });
  if (!answer.searched && worst != answer.rows.rend())
    answer.worst_cause = WhyReserved(context, *worst);
  if (question.shown.has_value()) answer.shown = *question.shown;
  const Bounds bounds = sought.get();
  answer.live = bounds.live;
  answer.packing = bounds.packing;
  if (std::string note = SearchLimitNote(schedule); answer.searched && !note.empty()) {
    report->add_notes(std::move(note));
  }
  if (!schedule.is_cold() && question.start == StartPolicy::kFresh) {
    report->add_notes(
        "every replay starts with only what was live when the recording began, allocated again, as "
        "a new process would; --start recorded also starts with what was cached then");
  }
  if (!schedule.is_cold() && answer.current.start == StartPolicy::kRecorded) {
    report->add_notes(
        "every replay starts with the segments and blocks that the recording started with, "
        "including cached ones; --start fresh starts with only what was live");
  }
  if (!answer.current.start_note.empty()) {
    report->add_notes(
        StrCat("the replay starts with what was live when the recording began, allocated again: ",
               answer.current.start_note));
  }
  AddSweep(answer, schedule, *on_card.torch.profile, report);
}

bool HasNoEvents(const Schedule& schedule) {
  return !schedule.is_program() && schedule.device_trace().events.empty();
}

// Adds what is known of the current settings where no setting can be tried: the final state.
void AddUntried(const Study& study, const SweepQuestion& question, proto::DeviceReport* report) {
  const DeviceContents contents = DescribeContents(study.schedule());
  const Bytes reserved(static_cast<uint64_t>(contents.peaks.peak_reserved_bytes()));
  const Bytes allocated(static_cast<uint64_t>(contents.inventory.final_allocated_bytes()));
  SweepRow row;
  row.config = study.settings().config;
  row.conf = row.config.conf;
  row.fraction = study.settings().fraction;
  row.peak_reserved = row.at_peak[UsageKind::kReserved] = reserved;
  row.peak_allocated = row.at_peak[UsageKind::kAllocated] = std::min(allocated, reserved);
  report->set_mode(proto::Mode::sweep);
  report->mutable_sweep()->set_searched(question.confs.empty());
  FillRow(row, row, study.schedule(), report->mutable_sweep()->mutable_current());
}

}  // namespace

std::vector<std::string> RisksOf(const AllocatorConfig& config, std::optional<double> fraction) {
  std::vector<std::string> risks;
  if (MayGrowWithoutBound(config)) {
    risks.push_back(
        "HARMFUL PAIR: with expandable_segments, max_split_size_mb can make reserved memory grow "
        "without bound");
  }
  if (config.backend == Backend::kCudaMallocAsync) {
    risks.push_back(
        "approximate: the size of the driver's pool is taken to be its high-water mark of use");
    return risks;
  }
  if (config.expandable_segments) {
    risks.push_back(
        "not available on every platform, and memory in expandable segments cannot always be "
        "shared with other processes");
  }
  if (config.max_split_size != kUnlimited) {
    risks.push_back(
        "tuned to the sizes in this file: with other shapes, large cached blocks that smaller "
        "requests may not use can pile up");
  }
  uint64_t coarsest = 0;
  for (const uint64_t divisions : config.roundup_power2_divisions) {
    if (divisions > 1 && (coarsest == 0 || divisions < coarsest)) coarsest = divisions;
  }
  if (coarsest != 0) {
    risks.push_back(
        StrCat("blocks are up to ", (100 + coarsest / 2) / coarsest, " % larger than the request"));
  }
  if (config.large_segment_size != AllocatorConfig().large_segment_size) {
    risks.push_back(StrCat("requests below 10 MiB reserve ", FormatSize(config.large_segment_size),
                           " at a time"));
  }
  if (config.garbage_collection_threshold > 0) {
    risks.push_back(
        "cached memory is released during allocations, and each release waits for the device");
  }
  const double share = std::min(fraction.value_or(1), config.per_process_memory_fraction);
  if (share < 1) {
    risks.push_back(absl::StrFormat("PyTorch may use only %g %% of the device", 100 * share));
  }
  return risks;
}

void AddSweep(const SweepAnswer& answer, const Schedule& schedule, const TorchProfile& profile,
              proto::DeviceReport* report) {
  report->set_mode(proto::Mode::sweep);
  proto::Sweep& sweep = *report->mutable_sweep();
  sweep.set_searched(answer.searched);
  sweep.set_variable(std::string(ConfVariable(schedule.trace().torch_version)));
  sweep.set_shown(static_cast<int32_t>(answer.shown));
  sweep.set_costs_of(CleanText(answer.costs_of));
  StackNames names(schedule.trace());
  const auto worst = std::find_if(answer.rows.rbegin(), answer.rows.rend(),
                                  [](const SweepRow& row) { return row.refused.empty(); });
  for (const SweepRow& row : answer.rows) {
    proto::SweepRow& to = *sweep.add_rows();
    FillRow(row, answer.current, schedule, &to);
    if (to.is_current() && answer.current_cause.has_value()) {
      AddCause(*answer.current_cause, schedule, names, &to);
    } else if (worst != answer.rows.rend() && &row == &*worst && answer.worst_cause.has_value()) {
      AddCause(*answer.worst_cause, schedule, names, &to);
    }
  }
  FillRow(answer.current, answer.current, schedule, sweep.mutable_current());
  if (!answer.rows.empty()) {
    const SweepRow& best = answer.rows.front();
    sweep.set_ties(static_cast<int32_t>(
        std::count_if(answer.rows.begin() + 1, answer.rows.end(), [&best](const SweepRow& row) {
          return row.refused.empty() && row.ooms == best.ooms &&
                 row.peak_reserved == best.peak_reserved;
        })));
  }
  if (answer.current_cause.has_value()) {
    AddCause(*answer.current_cause, schedule, names, sweep.mutable_current());
  }
  FillBounds(answer.live, answer.packing, sweep.mutable_lower_bounds());
  for (const SweepRow* row : Choose(answer, profile)) {
    Suggest(*row, answer.current, !answer.costs_of.empty(), sweep.variable(),
            sweep.add_suggestions());
  }
}

void FillBounds(const PeakLive& live, const Packing& packing, proto::LowerBounds* to) {
  to->set_peak_live_bytes(live.requested.signed_value());
  to->set_peak_live_rounded_bytes(live.rounded.signed_value());
  to->set_best_packing_bytes(packing.height.signed_value());
  to->set_packing(std::string(packing.heuristic));
}

std::string SearchLimitNote(const Schedule& schedule) {
  if (MaxSearch(schedule) >= kMaxSearch) return "";
  return StrCat("the search tried at most ", MaxSearch(schedule), " settings instead of ",
                kMaxSearch, ", because each replays ",
                FormatCount(std::ssize(schedule.requests()), "request"), "; --conf tries others");
}

void AddSweepTo(proto::DeviceReport* report, const Study& study, const SweepQuestion& question) {
  if (HasNoEvents(study.schedule())) {
    AddUntried(study, question, report);
  } else {
    AddSweepWith(SeekBounds(study.schedule(), question.threads), study, question, report);
  }
}

absl::StatusOr<proto::DeviceReport> AskSweep(const Study& study, const SweepQuestion& question) {
  const Schedule& schedule = study.schedule();
  const bool is_empty = HasNoEvents(schedule);
  std::future<Bounds> bounds;
  if (!is_empty) bounds = SeekBounds(schedule, question.threads);
  absl::StatusOr<proto::DeviceReport> report = AskCurrent(study);
  if (!report.ok()) return report;
  if (is_empty) {
    AddUntried(study, question, &*report);
    return report;
  }
  report->set_capacity_bytes(
      study.OnCard(study.settings()).capacity.value_or(Bytes()).signed_value());
  AddSweepWith(std::move(bounds), study, question, &*report);
  return report;
}

}  // namespace memreplay
