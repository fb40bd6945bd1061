#include "report/ask/sweep.h"

#include <algorithm>
#include <future>
#include <utility>

#include "absl/types/span.h"
#include "report/answer/sweep_report.h"
#include "report/ask/replay.h"
#include "sim/whatif/conf_search.h"
#include "sim/whatif/sweep.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

// Of the best rows: more are looked at by few.
constexpr size_t kErrorBars = 3;

}  // namespace

absl::StatusOr<proto::DeviceReport> AskSweep(const Schedule& schedule,
                                             const ReplaySettings& resolved,
                                             const SweepQuestion& question) {
  absl::StatusOr<CurrentReplay> current = AskCurrent(schedule, resolved);
  if (!current.ok()) return current.status();
  const ReplaySettings settings = OnRecordedCard(resolved, current->basis.card);
  current->report.set_capacity_bytes(settings.capacity.value_or(Bytes()).signed_value());

  SweepAnswer answer;
  std::future<void> bounds = std::async(std::launch::async, [&] {
    const std::vector<Lifetime> lifetimes = LifetimesOf(schedule);
    answer.live = PeakLiveOf(lifetimes);
    answer.packing = BestPacking(lifetimes);
  });
  const SweepContext context = {schedule,
                                settings,
                                &current->basis.start,
                                question.start,
                                question.threads,
                                question.costs != nullptr ? &question.costs->costs : nullptr};
  if (question.costs != nullptr) answer.costs_of = question.costs->card_text;
  answer.searched = question.confs.empty();
  if (answer.searched) {
    answer.rows = SearchConf(context);
    const auto in_force =
        std::find_if(answer.rows.begin(), answer.rows.end(), [&](const SweepRow& row) {
          return row.config == settings.config && row.fraction == settings.fraction;
        });
    answer.current = *in_force;
  } else {
    std::vector<Candidate> candidates;
    for (const std::string& conf : question.confs) candidates.push_back({conf, settings.fraction});
    answer.rows = Sweep(context, candidates);
    std::sort(answer.rows.begin(), answer.rows.end(), RanksBefore);
    answer.current = ReplayRow(context, settings);
  }
  FindOtherOrder(context,
                 absl::MakeSpan(answer.rows).first(std::min(kErrorBars, answer.rows.size())));
  FindOtherOrder(context, absl::MakeSpan(&answer.current, 1));
  answer.current_cause = WhyReserved(context, answer.current);
  const auto worst = std::find_if(answer.rows.rbegin(), answer.rows.rend(),
                                  [](const SweepRow& row) { return row.refused.empty(); });
  if (!answer.searched && worst != answer.rows.rend())
    answer.worst_cause = WhyReserved(context, *worst);
  if (question.shown.has_value()) answer.shown = *question.shown;
  bounds.get();
  if (!schedule.is_cold() && answer.current.start == StartPolicy::kRecorded) {
    current->report.add_notes(
        "every replay begins with the segments and blocks that the recording began with, cached "
        "ones included; --start fresh begins with only what was live");
  }
  if (!answer.current.start_note.empty()) {
    current->report.add_notes(
        StrCat("begins with what was live when recording began, allocated "
               "anew: ",
               answer.current.start_note));
  }
  AddSweep(answer, schedule, *settings.torch.profile, &current->report);
  return std::move(current->report);
}

}  // namespace memreplay
