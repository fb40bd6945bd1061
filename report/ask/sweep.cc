#include "report/ask/sweep.h"

#include <algorithm>
#include <future>
#include <utility>
#include <vector>

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

void AddSweepTo(proto::DeviceReport* report, const Schedule& schedule,
                const ReplaySettings& on_card, const WhatIfBasis& basis,
                const SweepQuestion& question) {
  SweepAnswer answer;
  std::future<void> bounds = std::async(std::launch::async, [&] {
    const std::vector<Lifetime> lifetimes = LifetimesOf(schedule);
    answer.live = PeakLiveOf(lifetimes);
    answer.packing = BestPacking(lifetimes);
  });
  const SweepContext context = {
      schedule,         on_card,
      &basis.start,     question.start,
      question.threads, question.costs != nullptr ? &question.costs->costs : nullptr,
      question.progress};
  if (question.costs != nullptr) answer.costs_of = question.costs->card_text;
  answer.searched = question.confs.empty();
  if (answer.searched) {
    answer.rows = SearchConf(context);
    const auto in_force =
        std::find_if(answer.rows.begin(), answer.rows.end(), [&](const SweepRow& row) {
          return row.config == on_card.config && row.fraction == on_card.fraction;
        });
    answer.current = *in_force;
  } else {
    if (question.progress != nullptr) {  // each, the settings in force, and error bars
      question.progress->SetTotal(question.confs.size() + 2 +
                                  std::min(kErrorBars, question.confs.size()));
    }
    std::vector<Candidate> candidates;
    for (const std::string& conf : question.confs) candidates.push_back({conf, on_card.fraction});
    answer.rows = Sweep(context, candidates);
    std::sort(answer.rows.begin(), answer.rows.end(), RanksBefore);
    answer.current = ReplayRow(context, on_card);
  }
  std::future<PeakCause> cause =
      std::async(question.threads > 1 ? std::launch::async : std::launch::deferred,
                 [&] { return WhyReserved(context, answer.current); });
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
  bounds.get();
  if (!schedule.is_cold() && answer.current.start == StartPolicy::kRecorded) {
    report->add_notes(
        "every replay begins with the segments and blocks that the recording began with, cached "
        "ones included; --start fresh begins with only what was live");
  }
  if (!answer.current.start_note.empty()) {
    report->add_notes(
        StrCat("begins with what was live when recording began, allocated "
               "anew: ",
               answer.current.start_note));
  }
  AddSweep(answer, schedule, *on_card.torch.profile, report);
}

absl::StatusOr<proto::DeviceReport> AskSweep(const Schedule& schedule,
                                             const ReplaySettings& settings,
                                             const SweepQuestion& question) {
  absl::StatusOr<CurrentReplay> current = AskCurrent(schedule, settings);
  if (!current.ok()) return current.status();
  const ReplaySettings on_card = OnRecordedCard(settings, current->basis.card);
  current->report.set_capacity_bytes(on_card.capacity.value_or(Bytes()).signed_value());
  AddSweepTo(&current->report, schedule, on_card, current->basis, question);
  return std::move(current->report);
}

}  // namespace memreplay
