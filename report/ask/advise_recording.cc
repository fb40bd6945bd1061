#include "report/ask/advise_recording.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "report/ask/replay.h"
#include "report/device/categories.h"
#include "report/device/device_report.h"
#include "report/words/answer.h"
#include "report/words/frame_text.h"
#include "report/words/sizes.h"
#include "report/words/stack_names.h"
#include "report/words/text.h"
#include "sim/category/category_table.h"
#include "sim/settings/conf_tokens.h"
#include "trace/value/status_macros.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

constexpr size_t kMaxRows = 12;
constexpr int kMaxServing = 3;
constexpr double kWorthShowing = 0.995;  // of the original peak
constexpr char kEqual[] = "the same is computed";
// Of what an edited recording needs: real programs were seen to need up to a fifth more
// (docs/advise.md).
constexpr double kEditMargin = 0.25;
constexpr char kOffload[] = "offload";

// The words for a remedy.
struct Words {
  std::string key;
  std::string change;
  std::string cost = "nothing";
  std::string preserves_text = kEqual;
  std::vector<std::string> lines;
  std::string place = {};
};

// Returns "model.py:180" for "model.py:180 forward".
std::string PlaceOf(const Trace& trace, uint32_t frame) {
  const std::string text = CleanText(ShortFrame(trace, trace.stacks.frame(frame)));
  return text.substr(0, text.rfind(' '));
}

// Returns "transformer.h.*" as a regular expression of Python.
std::string RegexOf(const std::string& path) {
  std::string regex;
  for (const char c : path) {
    if (c == '.') {
      regex += "\\.";
    } else if (c == '*') {
      regex += "\\d+";
    } else {
      regex += c;
    }
  }
  return regex;
}

class Wording {
 public:
  Wording(const RemedySearch& search, StackNames& names)
      : search_(search), trace_(search.facts.schedule->trace()), names_(names) {}

  Words Of(const Remedy& remedy) {
    switch (remedy.kind) {
      case RemedyKind::kSettings: {
        const std::string change = StrCat(ConfVariable(trace_.torch_version), "=", remedy.conf);
        return {.key = "settings",
                .change = change,
                .cost = "nothing in the script changes",
                .lines = {StrCat("export ", change)}};
      }
      case RemedyKind::kEarlyZero:
        return {.key = "set_to_none",
                .change = "gradients freed right after the optimizer's step",
                .lines = {"optimizer.step()",
                          "optimizer.zero_grad(set_to_none=True)  # here, not in the next step"}};
      case RemedyKind::kLeak:
        return {
            .key = "leak",
            .change =
                StrCat("freeing at the end of each step what ", LeakOf(remedy), " leaves behind"),
            .lines = {
                StrCat("# something keeps the tensors of ", LeakOf(remedy)),
                "loss.item()  # keep a number, not what it was computed from; of tensors .cpu()"}};
      case RemedyKind::kNoGrad:
        return {.key = "no_grad",
                .change = "evaluation without gradients",
                .lines = {"with torch.no_grad():", "    ...  # the evaluation"}};
      case RemedyKind::kEmptyCache:
        return {.key = "empty_cache",
                .change = "the cache emptied between training and evaluation, or after each step",
                .cost = "memory is requested from the driver again",
                .lines = {"torch.cuda.empty_cache()"}};
      case RemedyKind::kForeach:
        return {.key = "foreach",
                .change = "the optimizer with foreach=False",
                .cost = "the optimizer's step launches more kernels",
                .lines = {"torch.optim.AdamW(..., foreach=False)  # of the optimizer in use"}};
      case RemedyKind::kFusedLoss:
        return {.key = "loss",
                .change = StrCat("a fused loss, whose gradient takes the memory of the logits (",
                                 FormatSize(remedy.size), ", ", Label(remedy.stack), ")"),
                .cost = "about nothing",
                .preserves_text = "the same up to rounding",
                .lines = {"from liger_kernel.transformers import LigerCrossEntropyLoss  # pip "
                          "install liger-kernel",
                          "loss = LigerCrossEntropyLoss()(logits.view(-1, logits.size(-1)), "
                          "targets.view(-1))"}};
      case RemedyKind::kCheckpoint: return Checkpoint(remedy);
      case RemedyKind::kHost: break;
    }
    return {.key = kOffload,
            .change = "activations on the host between forward and backward",
            .cost = StrCat(FormatSize(remedy.work), " to the host and back in each step"),
            .lines = {"with torch.autograd.graph.save_on_cpu(pin_memory=True):",
                      "    loss = ...  # the forward pass"}};
  }

 private:
  std::string Label(uint32_t stack) { return CleanText(names_.Label(stack)); }

  std::string LeakOf(const Remedy& remedy) {
    return remedy.stack != kNoStack ? Label(remedy.stack)
                                    : StrCat("a line that allocates ", FormatSize(remedy.size));
  }

  Words Checkpoint(const Remedy& remedy) const {
    Words words;
    const RepeatedModule& module = search_.facts.modules[remedy.module];
    const std::string which = remedy.every == 1 ? "each module" : "every second module";
    words.preserves_text =
        "the same is computed, but BatchNorm's running statistics move twice in each step";
    words.lines = {"from torch.utils.checkpoint import checkpoint"};
    if (!module.path.empty()) {
      const std::string path = CleanText(module.path);
      words.key = StrCat("checkpoint:", path);
      words.change = StrCat("activation checkpointing of ",
                            remedy.every == 1 ? "each " : "every second ", path);
      words.lines.insert(words.lines.begin(), "import functools, re");
      words.lines.push_back(
          StrCat("blocks = [module for name, module in model.named_modules() if re.fullmatch(r\"",
                 RegexOf(path), "\", name)]"));
      words.lines.push_back(StrCat("for block in blocks", remedy.every == 1 ? "" : "[::2]", ":"));
      words.lines.push_back(
          "    block.forward = functools.partial(checkpoint, block.forward, use_reentrant=False)");
    } else {
      const std::string forward = PlaceOf(trace_, module.forward);
      words.place = PlaceOf(trace_, module.caller);
      words.key = StrCat("checkpoint:", forward);
      words.change = StrCat("activation checkpointing of ", which, " called at ", words.place, " (",
                            forward, ")");
      words.lines.push_back(StrCat("x = checkpoint(module, x, use_reentrant=False)  # ",
                                   words.place, ", instead of x = module(x)"));
    }
    if (remedy.every == 2) words.key += "/2";
    words.cost = StrCat("what makes ", std::lround(100 * remedy.share),
                        " % of a forward pass's allocations is computed twice");
    return words;
  }

  const RemedySearch& search_;
  const Trace& trace_;
  StackNames& names_;
};

void FillAdviceRow(const RemedySearch& search, const RemedyRun& run, bool is_lower_bound,
                   Wording& wording, proto::Advice::Row* row) {
  std::vector<std::string> changes, costs, preserves;
  row->set_preserves(true);
  for (const size_t i : run.remedies) {
    Words words = wording.Of(search.remedies[i]);
    row->add_remedies(words.key);
    row->set_transfers(row->transfers() || words.key == kOffload);
    changes.push_back(std::move(words.change));
    if (words.cost != "nothing") costs.push_back(std::move(words.cost));
    if (words.preserves_text != kEqual) preserves.push_back(words.preserves_text);
    for (std::string& line : words.lines) row->add_lines(std::move(line));
    if (!words.place.empty()) row->set_place(words.place);
  }
  row->set_change(changes.empty() ? "as it is" : absl::StrJoin(changes, ", and "));
  if (!run.remedies.empty()) {
    row->set_cost(costs.empty() ? "nothing" : absl::StrJoin(costs, "; "));
    row->set_preserves_text(preserves.empty() ? kEqual : absl::StrJoin(preserves, "; "));
  }
  row->set_cost_rank(run.cost);
  row->set_peak_reserved_bytes(run.peak_reserved.signed_value());
  row->set_peak_allocated_bytes(run.peak_allocated.signed_value());
  row->set_saved_bytes(search.as_is.peak_reserved.signed_value() -
                       run.peak_reserved.signed_value());
  row->set_survives(run.survives);
  const bool is_exact = absl::c_all_of(
      run.remedies, [&](size_t i) { return search.remedies[i].kind == RemedyKind::kSettings; });
  const double needs = static_cast<double>(run.peak_reserved.signed_value());
  const double margin = is_exact ? 0 : kEditMargin;
  row->set_fits(run.survives && !is_lower_bound &&
                (!search.goal.has_value() ||
                 needs * (1 + margin) <= static_cast<double>(search.goal->signed_value())));
  row->set_smallest_bytes(run.peak_reserved.signed_value());
  if (search.goal.has_value()) {
    row->set_spare_bytes(search.goal->signed_value() - run.peak_reserved.signed_value());
  }
}

// Returns what is live at the peak and is neither an activation nor a temporary; 0 if most is
// unknown.
Bytes BoundOf(const CategoryPeak& peak) {
  const auto of = [&](Category category) { return peak.bytes[static_cast<size_t>(category)]; };
  if (of(Category::kUnknown) * 2 > peak.live) return Bytes();
  Bytes bound = peak.live;
  for (const Category category :
       {Category::kActivation, Category::kLogits, Category::kTemporary, Category::kCopy}) {
    bound -= of(category);
  }
  return bound;
}

void FillScaling(const Scaling& scaling, proto::Advice::Scaling* out) {
  out->set_allocations(static_cast<int64_t>(scaling.allocations()));
  out->set_growing(static_cast<int64_t>(scaling.growing()));
  out->set_bent(static_cast<int64_t>(scaling.bent()));
  out->set_largest_bent_bytes(scaling.largest_bent().signed_value());
  for (const RecordedValue& recording : scaling.recordings()) {
    out->add_files(CleanText(recording.name));
    out->add_values(recording.value);
  }
}

// Returns how the sizes are known.
std::string ScalingNote(const proto::Advice& advice) {
  const proto::Advice::Scaling& scaling = advice.scaling();
  std::vector<std::string> names;
  for (int i = 0; i < scaling.files_size(); ++i) {
    names.push_back(StrCat(scaling.files(i), " (", scaling.values(i), ")"));
  }
  const std::string note = StrCat(
      "Sizes with other values of ", CleanText(advice.key()), " follow from ",
      absl::StrJoin(names, ", "), ", whose requests correspond: ", FormatCount(scaling.growing()),
      " of ", FormatCount(scaling.allocations(), "allocation"), " differ in size");
  if (scaling.bent() == 0) {
    return StrCat(note, names.size() > 2
                            ? ", and all are linear in it."
                            : ", and are taken as linear in it; a third recording would show "
                              "whether they are.");
  }
  return StrCat(note, ". ", FormatCount(scaling.bent()), " of these are not linear in it (at most ",
                FormatSize(scaling.largest_bent_bytes()),
                "), and are estimates between and beyond the recorded values.");
}

absl::Status FillLargest(const Study& study, const ReplaySettings& settings,
                         const RemedySearch& search, const RemedyRun& run, const Scaling& scaling,
                         proto::Advice::Row* row) {
  ASSIGN_OR_RETURN(const LargestFit found, FindLargestValue(study, settings, search, run, scaling));
  const int64_t largest = found.safe.value_or(0);
  row->set_largest(largest);
  row->set_largest_is_proven(found.tried.contains(largest + 1));
  return absl::OkStatus();
}

// Lists the cheapest rows that change the script and survive, and shows their runs. `runs` are
// those of the rows.
absl::Status FillServing(const Study& study, const ReplaySettings& settings,
                         const RemedySearch& search, absl::Span<const RemedyRun* const> runs,
                         const ServingQuestion& question, proto::Advice* advice) {
  for (int i = 0; i < advice->rows_size() && !search.as_is.survives; ++i) {
    const proto::Advice::Row& row = advice->rows(i);
    if (!row.survives() || advice->serving_rows_size() == kMaxServing) break;
    // Settings alone are among the counterfactuals.
    if (row.remedies_size() == 1 && row.remedies(0) == "settings") continue;
    advice->add_serving_rows(i);
    if (!question.show) continue;
    std::optional<HistoryObserver> history;
    RETURN_IF_ERROR(WatchRun(study, settings, search, *runs[static_cast<size_t>(i)],
                             [&](const Schedule& edited) {
                               return &history.emplace(edited, HistoryObserver::Clock::kRequests,
                                                       question.timeline_buckets);
                             }));
    question.show(*history);
  }
  return absl::OkStatus();
}

// Returns whether the recording ends before the backward pass of its last forward pass.
bool EndsInPass(const RemedySearch& search) {
  const std::vector<Pass>& passes = search.facts.passes;
  return !search.is_cut && !passes.empty() && !search.facts.modules.empty() &&
         passes.back().backward == kNoRequest && !passes.back().is_over_without_backward;
}

}  // namespace

absl::StatusOr<proto::Advice> AdviceOf(const Study& study, const ReplaySettings& settings,
                                       const std::string& card, ProgressSink* progress,
                                       proto::DeviceReport* report, const ScaledQuestion* scaled,
                                       const ServingQuestion* serving) {
  proto::Advice advice;
  advice.set_source(proto::Advice::edit);
  advice.set_card(card);
  std::optional<Schedule> other;  // with the sizes of another value
  if (scaled != nullptr) {
    const int64_t value = scaled->value == 0 ? scaled->scaling.base().value : scaled->value;
    advice.set_key(scaled->key);
    advice.set_value(value);
    FillScaling(scaled->scaling, advice.mutable_scaling());
    other = scaled->scaling.At(value);
  }
  const Schedule& schedule = other.has_value() ? *other : study.schedule();
  ASSIGN_OR_RETURN(std::optional<RemedySearch> found,
                   SearchRemedies(study, schedule, settings, progress));
  if (!found.has_value()) {
    advice.add_notes("A schedule that is expanded while it is replayed cannot be edited.");
    return advice;
  }
  const RemedySearch& search = *found;
  StackNames names(schedule.trace());
  Wording wording(search, names);
  if (search.goal.has_value()) advice.set_goal_bytes(search.goal->signed_value());
  if (EndsInPass(search)) {
    if (!report->has_unseen()) report->mutable_unseen()->set_first_oom_event(-1);
    report->mutable_unseen()->set_ends_in_pass(true);
  }
  advice.set_is_lower_bound(IsLowerBound(report->unseen()));
  FillAdviceRow(search, search.as_is, advice.is_lower_bound(), wording, advice.mutable_as_is());
  advice.set_bound_bytes(
      BoundOf(CategoriesOverTime(schedule, study.meanings()).peak).signed_value());
  advice.set_runs(static_cast<int64_t>(search.replays));
  std::vector<const RemedyRun*> rows;
  for (const RemedyRun& run : search.runs) {
    const bool saves = static_cast<double>(run.peak_reserved.value()) <
                       kWorthShowing * static_cast<double>(search.as_is.peak_reserved.value());
    if (saves || (run.survives && !search.as_is.survives)) {
      rows.push_back(&run);
    }
  }
  absl::c_stable_sort(rows, [](const RemedyRun* a, const RemedyRun* b) {
    if (a->survives != b->survives) return a->survives;
    if (a->survives && a->cost != b->cost) return a->cost < b->cost;
    return a->peak_reserved < b->peak_reserved;
  });
  if (rows.size() > kMaxRows) rows.resize(kMaxRows);
  for (const RemedyRun* run : rows) {
    FillAdviceRow(search, *run, advice.is_lower_bound(), wording, advice.add_rows());
  }
  if (serving != nullptr) {
    RETURN_IF_ERROR(FillServing(study, settings, search, rows, *serving, &advice));
  }
  if (scaled != nullptr && scaled->finds_largest) {
    absl::Status filled =
        FillLargest(study, settings, search, search.as_is, scaled->scaling, advice.mutable_as_is());
    for (size_t i = 0; i < rows.size() && filled.ok(); ++i) {
      filled = FillLargest(study, settings, search, *rows[i], scaled->scaling,
                           advice.mutable_rows(static_cast<int>(i)));
    }
    if (!filled.ok()) return filled;
  }

  advice.add_notes(
      "The replay is exact for the allocator; what the changed script would request is estimated "
      "(docs/advise.md).");
  if (scaled != nullptr) advice.add_notes(ScalingNote(advice));
  if (search.is_fresh) {
    advice.add_notes(
        "The recording began with memory in use: replays begin with what was live then, allocated "
        "again, without what was cached.");
  }
  if (!search.is_complete) {
    advice.add_notes(StrCat("The search stopped after ", search.replays,
                            " replays; other combinations were not tried."));
  }
  if (search.remedies.empty() ||
      (search.remedies.size() == 1 && search.remedies[0].kind == RemedyKind::kSettings)) {
    advice.add_notes(
        "The recording does not show what a change of the script would do: it has no module that "
        "is called several times in a forward pass and keeps something for backward, no loss and "
        "no optimizer step with stacks.");
  }
  return advice;
}

absl::StatusOr<proto::DeviceReport> AskAdvice(const Study& study, const std::string& card,
                                              ProgressSink* progress,
                                              const ScaledQuestion* scaled) {
  absl::StatusOr<proto::DeviceReport> report = AskCurrent(study);
  if (!report.ok()) return report;
  const ReplaySettings on_card = study.OnCard(study.settings());
  if (scaled != nullptr && scaled->finds_largest && !on_card.capacity.has_value()) {
    return InvalidArgument(scaled->key, "=?: expected --card as well, the GPU that it should fit");
  }
  report->set_capacity_bytes(on_card.capacity.value_or(Bytes()).signed_value());
  ASSIGN_OR_RETURN(proto::Advice advice,
                   AdviceOf(study, on_card, card, progress, &*report, scaled));
  StackNames names(study.trace());
  AddCategories(study, names, &*report);
  AddHolding(study.trace(), study.schedule().device_index(), &*report);
  // The categories and holders are those of the recording.
  if (scaled == nullptr || advice.value() == scaled->scaling.base().value) {
    *advice.mutable_diagnosis() = DiagnosisOf(*report);
  }
  *report->mutable_advice() = std::move(advice);
  return report;
}

}  // namespace memreplay
