#include "experiment/advise_script.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/types/span.h"
#include "experiment/changed_runs.h"
#include "experiment/patch.h"
#include "experiment/script_search.h"
#include "proto/record.pb.h"
#include "report/device/device_report.h"
#include "report/words/sizes.h"
#include "report/words/text.h"
#include "trace/value/status_macros.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

using Names = ChangedRuns::Remedies;

constexpr char kNothing[] = "nothing";            // a cost
constexpr size_t kLargestCombination = 3;         // remedies in one row
constexpr char kCache[] = "kv_cache";             // a remedy whose argument is no class
constexpr char kRoofline[] = "roofline";          // among the remedies, but it changes nothing
constexpr int kMaxTimed = 8;                      // rows
constexpr int kMaxConfirmed = 3;                  // rows
constexpr double kWorthSaying = 0.02;             // of FLOPs and time
constexpr int64_t kMinPinned = int64_t{1} << 20;  // less is not worth mentioning

// A change and the run with it.
struct Tried {
  std::vector<const proto::Proposal*> parts;
  proto::AdvisedRun run;

  // Of "checkpoint" and "checkpoint:Block", too, only one is made.
  bool has_group(const std::string& group) const {
    return absl::c_any_of(parts, [&](const proto::Proposal* part) {
      return part->group() == group || part->group().starts_with(group + ":") ||
             group.starts_with(part->group() + ":");
    });
  }
  bool preserves() const {
    return absl::c_all_of(parts, [](const proto::Proposal* part) { return part->preserves(); });
  }
  double cost() const {
    double sum = 0;
    for (const proto::Proposal* part : parts) sum += part->cost_rank();
    return sum;
  }
  Names names() const {
    Names names;
    for (const proto::Proposal* part : parts) names.push_back(part->name());
    return names;
  }
};

// Returns the minimum that a run needs under any of its settings.
int64_t SmallestOf(const proto::AdvisedRun& run) {
  int64_t smallest = 0;
  for (const proto::AdvisedRun::Fit& fit : run.fits()) {
    if (fit.smallest() > 0 && (smallest == 0 || fit.smallest() < smallest)) {
      smallest = fit.smallest();
    }
  }
  return smallest;
}

// Error: Cancelled, if one of the runs is interrupted.
absl::Status InterruptionIn(const std::vector<proto::AdvisedRun>& runs) {
  const bool found =
      absl::c_any_of(runs, [](const proto::AdvisedRun& run) { return run.interrupted(); });
  return found ? absl::CancelledError("interrupted") : absl::OkStatus();
}

// Ranks a row by the time of a step, and of equal times by what its change is said to cost.
void SetRankByTime(double as_is_seconds, proto::Advice::Row* row) {
  if (as_is_seconds == 0 || row->step_seconds() == 0) return;
  const double percent = std::round(100 * row->step_seconds() / as_is_seconds);
  row->set_cost_rank(percent / 100 + 0.001 * row->cost_rank());
}

// Returns whether a run got to a change: its files were read, or what it changes was used.
bool IsMet(const proto::Proposal& change, const std::set<std::string>& met) {
  if (!change.edits().empty()) {
    return absl::c_all_of(change.edits(),
                          [&](const proto::Edit& edit) { return met.count(edit.file()) > 0; });
  }
  return !change.arguments().empty() || met.count(change.name()) > 0;
}

// The search for the changes with which one script fits.
class ChangeSearch {
 public:
  ChangeSearch(const AdviceQuestion& question, ChangedRuns* runs)
      : question_(question), runs_(*runs) {}

  absl::StatusOr<proto::Advice> Find() {
    RETURN_IF_ERROR(RunAsIs());
    RETURN_IF_ERROR(Propose());
    absl::Status done = TryAll();
    AddRows();
    if (done.ok()) done = LookCloser();
    if (done.ok()) return std::move(advice_);
    if (!absl::IsCancelled(done)) return done;
    std::vector<std::string> untried;
    for (const proto::Proposal& proposal : proposals_) {
      const bool has_row = absl::c_any_of(advice_.rows(), [&](const proto::Advice::Row& row) {
        return absl::c_find(row.remedies(), proposal.name()) != row.remedies().end();
      });
      if (!has_row) untried.push_back(proposal.name());
    }
    advice_.add_notes(untried.empty() ? "It was interrupted before all runs had ended."
                                      : StrCat("It was interrupted before these were tried: ",
                                               absl::StrJoin(untried, ", "), "."));
    return std::move(advice_);
  }

 private:
  absl::Status RunAsIs() {
    as_is_ = runs_.RunEach(std::vector<Names>(1)).front();
    if (as_is_.interrupted()) return absl::CancelledError("interrupted");
    if (!as_is_.error().empty()) return absl::InvalidArgumentError(as_is_.error());
    if (as_is_.fits().empty()) return absl::InvalidArgumentError("it allocated no GPU memory");
    runs_.SetProposals({as_is_.proposals().begin(), as_is_.proposals().end()});
    advice_.set_source(proto::Advice::run);
    advice_.set_card(question_.script.card);
    for (std::string& word : runs_.Command()) *advice_.add_program() = std::move(word);
    advice_.set_key(question_.key.name);
    advice_.set_value(question_.value);
    *advice_.mutable_diagnosis() = as_is_.diagnosis();
    advice_.set_bound_bytes(as_is_.bound());
    advice_.set_goal_bytes(std::max<int64_t>(
        question_.memory.signed_value() - as_is_.reserve() - as_is_.outside(), 1));
    for (const std::string& note : as_is_.notes()) advice_.add_notes(note);
    proto::Advice::Row as_is = RowOf({{}, as_is_}, as_is_.fits(0));
    as_is.set_preserves(true);
    as_is.set_saved_bytes(0);
    as_is.clear_cost();
    *advice_.mutable_as_is() = std::move(as_is);
    return absl::OkStatus();
  }

  // Error: InvalidArgument if --try names a class that the script does not use.

  absl::Status Propose() {
    if (question_.only.empty()) {
      absl::c_copy_if(as_is_.proposals(), std::back_inserter(proposals_),
                      [](const proto::Proposal& proposal) { return !proposal.named_only(); });
      return absl::OkStatus();
    }
    for (const std::string& name : question_.only) {
      const auto known = absl::c_find_if(as_is_.proposals(), [&](const proto::Proposal& proposal) {
        return proposal.name() == name;
      });
      if (known != as_is_.proposals().end()) {
        proposals_.push_back(*known);
        continue;
      }
      RETURN_IF_ERROR(CheckClass(name));
      proto::Proposal& proposal = proposals_.emplace_back();
      proposal.set_name(name);
      proposal.set_change(name);
      proposal.set_group(name.substr(0, name.find(':')));
      proposal.set_cost("unknown");
      proposal.set_cost_rank(2);
      proposal.set_preserves_text("unknown");
    }
    return absl::OkStatus();
  }

  absl::Status CheckClass(const std::string& name) const {
    const std::vector<std::string> parts = absl::StrSplit(name, ':');
    const auto& classes = as_is_.classes();
    if (parts.size() < 2 || parts[1].empty() || parts[0] == kCache || classes.empty() ||
        absl::c_find(classes, parts[1]) != classes.end()) {
      return absl::OkStatus();
    }
    std::vector<std::string> names;
    for (const proto::Proposal& proposal : as_is_.proposals()) {
      if (proposal.name().starts_with(StrCat(parts[0], ":"))) names.push_back(proposal.name());
    }
    const std::string_view nearest =
        NearestWord(parts[1], std::vector<std::string_view>(classes.begin(), classes.end()));
    return absl::InvalidArgumentError(
        StrCat("--try ", name, ": the script uses no class ", parts[1],
               !nearest.empty() ? StrCat("; did you mean ", parts[0], ":", nearest, "?")
               : names.empty()  ? std::string()
                                : StrCat("; advise would try ", absl::StrJoin(names, ", "))));
  }

  // Runs these combinations. Error: interrupted.

  absl::Status Try(std::vector<std::vector<const proto::Proposal*>> combinations) {
    std::vector<Names> names;
    for (const std::vector<const proto::Proposal*>& parts : combinations) {
      names.push_back(Tried{parts, {}}.names());
      known_.insert(names.back());
    }
    const std::vector<proto::AdvisedRun> runs = runs_.RunEach(names);
    for (size_t i = 0; i < combinations.size(); ++i) {
      if (runs[i].interrupted()) continue;
      Tried tried{combinations[i], runs[i]};
      const std::set<std::string> met(runs[i].met().begin(), runs[i].met().end());
      for (const proto::Proposal* part : tried.parts) {
        if (!tried.run.error().empty() || IsMet(*part, met)) continue;
        tried.run.set_error(
            StrCat(names[i].size() > 1 ? part->name() + ": " : "", "the script never gets to it"));
      }
      if (tried.run.error().empty() && tried.run.fits_size() > 0) {
        tried_.push_back(std::move(tried));
        continue;
      }
      proto::Advice::Row& row = *advice_.add_rows();
      for (const std::string& name : names[i]) row.add_remedies(name);
      row.set_change(absl::StrJoin(tried.parts, " and ", [](std::string* out, const auto* part) {
        out->append(part->change());
      }));
      row.set_error(tried.run.error().empty() ? "it allocated no GPU memory" : tried.run.error());
    }
    return InterruptionIn(runs);
  }

  // Tries combinations of remedies that saved something alone. Those that should fit if savings add
  // up come first, the cheapest of them first, then the others by what they lack.
  absl::Status TryCombinations(size_t size, bool preserving) {
    const int64_t whole = SmallestOf(as_is_);
    const bool is_better_sought = HasFitting(preserving, /*transfers=*/true);
    std::map<const proto::Proposal*, int64_t> saved;
    for (const Tried& tried : tried_) {
      if (tried.parts.size() != 1 || tried.parts[0]->named_only() ||
          (preserving && !tried.preserves()) || (is_better_sought && tried.parts[0]->transfers())) {
        continue;
      }
      const int64_t less = std::max(whole - SmallestOf(tried.run),
                                    as_is_.peak_allocated() - tried.run.peak_allocated());
      if (less * 500 > whole) saved[tried.parts[0]] = less;
    }
    struct Combination {
      std::vector<const proto::Proposal*> parts;
      double cost = 0;
      int64_t short_of = 0;  // of the goal, if savings add up
    };
    std::vector<Combination> combinations = {{{}, 0, 0}};
    for (size_t k = 0; k < size; ++k) {
      std::vector<Combination> longer;
      for (const Combination& shorter : combinations) {
        for (const proto::Proposal& next : proposals_) {
          if (saved.count(&next) == 0) continue;
          if (!shorter.parts.empty() && &next <= shorter.parts.back()) continue;
          Tried parts{shorter.parts, {}};
          if (parts.has_group(next.group())) continue;
          parts.parts.push_back(&next);
          longer.push_back({parts.parts, parts.cost(), 0});
        }
      }
      combinations = std::move(longer);
    }
    for (Combination& combination : combinations) {
      int64_t needs = whole;
      for (const proto::Proposal* part : combination.parts) needs -= saved[part];
      combination.short_of = std::max<int64_t>(needs - advice_.goal_bytes(), 0);
    }
    if (is_better_sought) {
      std::erase_if(combinations, [](const Combination& each) { return each.short_of > 0; });
    }
    std::stable_sort(combinations.begin(), combinations.end(), [](const auto& a, const auto& b) {
      return std::make_pair(a.short_of, a.cost) < std::make_pair(b.short_of, b.cost);
    });
    std::vector<std::vector<const proto::Proposal*>> batch;
    for (size_t i = 0; i < combinations.size(); ++i) {
      const std::vector<const proto::Proposal*>& parts = combinations[i].parts;
      if (known_.count(Tried{parts, {}}.names()) == 0 && !FitsWithin(parts)) batch.push_back(parts);
      const bool is_last = i + 1 == combinations.size();
      const size_t left = question_.max_runs - combinations_;
      if (!batch.empty() && (is_last || batch.size() >= std::min(runs_.at_once(), left))) {
        combinations_ += batch.size();
        RETURN_IF_ERROR(Try(std::exchange(batch, {})));
        if (HasFitting(preserving, !is_better_sought)) return absl::OkStatus();
      }
      if (combinations_ >= question_.max_runs && !is_last) {
        advice_.add_notes(StrCat("Only ", combinations_,
                                 " combinations of changes were run; --max-runs allows more."));
        break;
      }
    }
    return absl::OkStatus();
  }

  // Returns whether some of the parts, but not all, fit.
  bool FitsWithin(const std::vector<const proto::Proposal*>& parts) const {
    return absl::c_any_of(tried_, [&](const Tried& tried) {
      return tried.parts.size() < parts.size() && Fits(SmallestOf(tried.run)) &&
             absl::c_all_of(tried.parts, [&](const proto::Proposal* part) {
               return absl::c_find(parts, part) != parts.end();
             });
    });
  }

  // Says in a row how its changes were made.
  void Write(const Names& names, proto::Advice::Row* row) const {
    const absl::StatusOr<MadeChange> made = runs_.Make(names);
    if (!made.ok()) return;  // nothing was run
    for (const std::string& word : made->arguments) row->add_arguments(word);
    absl::StatusOr<Patch> patch = PatchOf(made->edits, FolderOfScript(question_.script.program));
    if (patch.ok()) {
      row->set_patch(std::move(patch->text));
      row->set_patch_folder(std::move(patch->folder));
    } else {
      row->set_unwritten(std::string(patch.status().message()));
    }
  }

  proto::Advice::Row RowOf(const Tried& tried, const proto::AdvisedRun::Fit& fit) const {
    proto::Advice::Row row;
    std::vector<std::string> changes, costs, places, kept;
    double cost = tried.cost();
    row.set_preserves(tried.preserves());
    for (const proto::Proposal* part : tried.parts) {
      row.add_remedies(part->name());
      changes.push_back(part->change());
      if (part->cost() != kNothing && absl::c_find(costs, part->cost()) == costs.end()) {
        costs.push_back(part->cost());
      }
      if (!part->place().empty()) places.push_back(part->place());
      if (row.preserves() || !part->preserves()) kept.push_back(part->preserves_text());
      if (!part->edits().empty() || !part->arguments().empty()) continue;
      if (row.unwritten().empty()) row.set_unwritten(part->unwritten());
      if (!part->place().empty()) row.add_lines(StrCat("# ", part->place()));
      for (const std::string& line : part->lines()) row.add_lines(line);
    }
    Write(tried.names(), &row);
    if (!as_is_.fits().empty() && fit.conf() != as_is_.fits(0).conf()) {
      row.add_remedies(fit.conf());
      changes.push_back(fit.conf());
      cost += 0.01;
      row.add_environment(StrCat("PYTORCH_CUDA_ALLOC_CONF=", fit.conf()));
      if (kept.empty()) kept.push_back("the same");
    }
    const int64_t more = tried.run.launches() - as_is_.launches();
    if (as_is_.launches() > 0 && 50 * std::abs(more) >= as_is_.launches()) {
      costs.push_back(absl::StrFormat(
          "%.0f %% %s kernels",
          100.0 * static_cast<double>(std::abs(more)) / static_cast<double>(as_is_.launches()),
          more > 0 ? "more" : "fewer"));
    }
    if (const int64_t pinned = tried.run.pinned() - as_is_.pinned(); pinned >= kMinPinned) {
      costs.push_back(StrCat(FormatSize(pinned), " of pinned memory of the host"));
    }
    if (costs.empty()) costs.push_back(kNothing);
    row.set_change(absl::StrJoin(changes, " and "));
    row.set_cost(absl::StrJoin(costs, "; "));
    row.set_cost_rank(cost);
    row.set_transfers(Transfers(tried.names()));
    row.set_preserves_text(absl::StrJoin(kept, "; "));
    row.set_place(absl::StrJoin(places, ", "));
    row.set_peak_reserved_bytes(fit.peak_reserved());
    row.set_peak_allocated_bytes(fit.peak_allocated());
    if (fit.smallest() > 0) {
      row.set_smallest_bytes(fit.smallest() + tried.run.outside() - as_is_.outside());
    }
    CompareRow(advice_, &row);
    return row;
  }

  absl::Status TryAll() {
    std::vector<std::vector<const proto::Proposal*>> singles;
    for (const proto::Proposal& proposal : proposals_) singles.push_back({&proposal});
    RETURN_IF_ERROR(Try(std::move(singles)));
    if (advice_.as_is().fits() || Fits(SmallestOf(as_is_))) return absl::OkStatus();
    for (const bool preserving : {true, false}) {
      for (size_t size = 2; size <= kLargestCombination; ++size) {
        // What goes over PCIe is the last resort of what preserves results.
        const bool is_done = HasFitting(preserving, /*transfers=*/!preserving);
        if (is_done || combinations_ >= question_.max_runs) break;
        RETURN_IF_ERROR(TryCombinations(size, preserving));
      }
    }
    return absl::OkStatus();
  }

  void AddRows() {
    const auto add = [&](const Tried& tried, const proto::AdvisedRun::Fit& fit) {
      *advice_.add_rows() = RowOf(tried, fit);
    };
    // Settings alone are a row if they help.
    std::set<std::string> enough;  // settings that fit without a remedy
    for (int i = 1; i < as_is_.fits_size(); ++i) {
      const proto::AdvisedRun::Fit& fit = as_is_.fits(i);
      if (Fits(fit.smallest())) enough.insert(fit.conf());
      add({{}, as_is_}, fit);
    }
    for (const Tried& tried : tried_) {
      const bool fits_alone = Fits(tried.run.fits(0).smallest());
      if (tried.parts.size() == 1 || (fits_alone && !FitsWithin(tried.parts))) {
        add(tried, tried.run.fits(0));
      }
      for (int i = 1; i < tried.run.fits_size(); ++i) {
        const proto::AdvisedRun::Fit& fit = tried.run.fits(i);
        if (fits_alone || enough.count(fit.conf()) > 0 || !Fits(fit.smallest())) continue;
        if (!FitsWithin(tried.parts)) add(tried, fit);
      }
    }
    RankRows(&advice_);
  }

  // Finds out more about the rows.

  absl::Status LookCloser() {
    RETURN_IF_ERROR(EstimateTimes());
    RETURN_IF_ERROR(Confirm());
    return FindLargest();
  }

  // The remedies of a row, and its settings: "" are the script's own.

  std::pair<Names, std::string> PartsOf(const proto::Advice::Row& row) const {
    Names remedies;
    std::string conf;
    for (const std::string& name : row.remedies()) {
      const bool is_remedy = absl::c_any_of(
          proposals_, [&](const proto::Proposal& proposal) { return proposal.name() == name; });
      if (is_remedy) {
        remedies.push_back(name);
      } else {
        conf = name;
      }
    }
    return {remedies, conf};
  }

  // Runs the first rows on a GPU of the given size, which gives their peaks; a row that fails there
  // no longer fits. Where the script fits as it is, only those with settings: the others have the
  // peaks of a run already.
  absl::Status Confirm() {
    for (int i = 0; i < std::min(advice_.rows_size(), kMaxConfirmed); ++i) {
      proto::Advice::Row& row = *advice_.mutable_rows(i);
      if (!row.fits()) break;
      if (row.is_confirmed()) continue;
      const auto [remedies, conf] = PartsOf(row);
      if (advice_.as_is().fits() && conf.empty()) continue;
      const absl::StatusOr<proto::ScriptRow> run = runs_.RunOnCard(remedies, conf);
      if (!run.ok() && absl::IsCancelled(run.status())) return run.status();
      if (run.ok() && run->fits()) {
        row.set_is_confirmed(true);
        row.set_peak_reserved_bytes(run->peak_reserved());
        row.set_peak_allocated_bytes(run->peak_allocated());
        row.set_saved_bytes(advice_.as_is().peak_reserved_bytes() - run->peak_reserved());
        continue;
      }
      row.set_fits(false);
      row.set_survives(false);
      advice_.add_notes(StrCat(row.change(), ": enough by its recording, but ",
                               run.ok() ? std::string("memory runs out when it is run on that GPU")
                                        : std::string(run.status().message()),
                               "."));
      RankRows(&advice_);
      i = -1;
    }
    return absl::OkStatus();
  }

  // Returns whether the script compiles with these remedies: then its time is not estimated.

  bool Compiles(const Names& remedies) const {
    return absl::c_any_of(tried_, [&](const Tried& tried) {
      return tried.run.compiles() && tried.names() == remedies;
    });
  }

  // Estimates the time of a step of the first rows that fit, by a run for each.

  absl::Status EstimateTimes() {
    std::vector<proto::Advice::Row*> rows;
    for (proto::Advice::Row& row : *advice_.mutable_rows()) {
      if (!row.error().empty() || !row.fits() || Compiles(PartsOf(row).first)) continue;
      if (rows.size() < kMaxTimed) rows.push_back(&row);
    }
    if (rows.empty() || as_is_.compiles()) return absl::OkStatus();
    std::vector<Names> names = {{}};
    std::vector<size_t> run_of;  // by row
    for (const proto::Advice::Row* row : rows) {
      Names own = PartsOf(*row).first;
      const auto known = absl::c_find(names, own);
      run_of.push_back(static_cast<size_t>(known - names.begin()));
      if (known == names.end()) names.push_back(std::move(own));
    }
    std::vector<Names> timed = names;
    for (Names& own : timed) own.push_back(kRoofline);
    const std::vector<proto::AdvisedRun> runs = runs_.RunEach(timed);
    RETURN_IF_ERROR(InterruptionIn(runs));
    const proto::Work& now = runs[0].work();
    if (now.steps() == 0 || now.flops() == 0) return absl::OkStatus();
    const auto of_step = [](const proto::Work& work, double all) {
      return all / static_cast<double>(work.steps());
    };
    advice_.mutable_as_is()->set_step_seconds(of_step(now, now.seconds()));
    for (size_t i = 0; i < rows.size(); ++i) {
      proto::Advice::Row* const row = rows[i];
      const proto::Work& work = runs[run_of[i]].work();
      if (work.steps() == 0 || run_of[i] == 0) continue;
      row->set_step_seconds(of_step(work, work.seconds()));
      SetRankByTime(advice_.as_is().step_seconds(), row);
      std::vector<std::string> costs;
      if (row->cost() != kNothing) costs.push_back(row->cost());
      const auto add = [&](double before, double after, const char* more, const char* less) {
        const double change = before == 0 ? 0 : after / before - 1;
        if (std::abs(change) < kWorthSaying) return;
        costs.push_back(
            absl::StrFormat("%.0f %% %s", 100 * std::abs(change), change > 0 ? more : less));
      };
      add(of_step(now, now.flops()), of_step(work, work.flops()), "more FLOPs", "fewer FLOPs");
      add(advice_.as_is().step_seconds(), row->step_seconds(), "more time (an estimate)",
          "less time (an estimate)");
      row->set_cost(costs.empty() ? kNothing : absl::StrJoin(costs, "; "));
    }
    RankRows(&advice_);
    return absl::OkStatus();
  }

  // Runs those of `values` that have not been run with `remedies`. Errors: interrupted; a run
  // failed; ResourceExhausted: all runs were made.

  absl::StatusOr<std::vector<proto::ScriptRow>> RunValuesOf(const Names& remedies,
                                                            const std::string& conf,
                                                            absl::Span<const int64_t> values) {
    std::vector<int64_t> unknown;
    for (const int64_t value : values) {
      if (with_value_.count({remedies, value}) == 0) unknown.push_back(value);
    }
    if (values_run_ + unknown.size() > question_.max_runs) {
      return absl::ResourceExhaustedError("all runs were made");
    }
    values_run_ += unknown.size();
    if (!unknown.empty()) {
      std::vector<proto::AdvisedRun> runs = runs_.RunValues(remedies, unknown);
      RETURN_IF_ERROR(InterruptionIn(runs));
      for (size_t i = 0; i < unknown.size(); ++i) {
        with_value_[{remedies, unknown[i]}] = std::move(runs[i]);
      }
    }
    std::vector<proto::ScriptRow> rows;
    for (const int64_t value : values) {
      const proto::AdvisedRun& run = with_value_[{remedies, value}];
      if (!run.error().empty()) return absl::InvalidArgumentError(StrCat(value, ": ", run.error()));
      const auto fit = absl::c_find_if(run.fits(), [&](const proto::AdvisedRun::Fit& each) {
        return conf.empty() || each.conf() == conf;
      });
      if (fit == run.fits().end()) {
        return absl::InvalidArgumentError(StrCat(value, ": it was not replayed under ", conf));
      }
      const int64_t needs =
          fit->smallest() > 0 ? fit->smallest() + run.outside() - as_is_.outside() : 0;
      proto::ScriptRow& row = rows.emplace_back();
      row.set_fits(Fits(needs));
      row.set_peak_reserved(needs);
      row.set_spare(advice_.goal_bytes() - needs);
    }
    return rows;
  }

  // What was run already counts as none, so that rows with the same remedies share their runs.
  absl::Status FindLargest() {
    if (!question_.finds_largest) return absl::OkStatus();
    if (question_.value > 0) {
      with_value_[{Names(), question_.value}] = as_is_;
      for (const Tried& tried : tried_) with_value_[{tried.names(), question_.value}] = tried.run;
    }
    std::vector<proto::Advice::Row*> rows = {advice_.mutable_as_is()};
    for (proto::Advice::Row& row : *advice_.mutable_rows()) {
      if (row.error().empty()) rows.push_back(&row);
    }
    for (proto::Advice::Row* row : rows) {
      const absl::Status found = FindLargestOf(row);
      if (found.ok()) continue;
      if (absl::IsCancelled(found)) return found;
      if (absl::IsResourceExhausted(found)) {
        advice_.add_notes(StrCat("Only ", FormatCount(static_cast<int64_t>(values_run_), "run"),
                                 " looked for the largest ", question_.key.name,
                                 "; --max-runs allows more."));
        break;
      }
      advice_.add_notes(StrCat(row->change().empty() ? "As it is" : row->change(), ": the largest ",
                               question_.key.name, " is not known, since a run with ",
                               std::string(found.message())));
    }
    return absl::OkStatus();
  }

  absl::Status FindLargestOf(proto::Advice::Row* row) {
    const auto [remedies, conf] = PartsOf(*row);
    ScriptSearch search(
        [&, &names = remedies, &under = conf](absl::Span<const int64_t> values) {
          return RunValuesOf(names, under, values);
        },
        runs_.at_once());
    if (question_.value > 0) {
      RETURN_IF_ERROR(search.Try({question_.value}));
    }
    const absl::StatusOr<int64_t> largest = search.FindLargest(1, ScriptSearch::kMaxValue);
    if (largest.ok()) {
      row->set_largest(*largest);
      row->set_largest_is_proven(true);
      return absl::OkStatus();
    }
    for (const auto& [value, tried] : search.tried()) {
      if (!tried.fits()) break;
      row->set_largest(value);
    }
    return largest.status();
  }

  bool Fits(int64_t smallest) const { return smallest > 0 && smallest <= advice_.goal_bytes(); }
  // Returns whether one of these remedies takes memory to the host and back.

  bool Transfers(const Names& remedies) const {
    return absl::c_any_of(proposals_, [&](const proto::Proposal& proposal) {
      return proposal.transfers() && absl::c_find(remedies, proposal.name()) != remedies.end();
    });
  }

  // Returns whether something fits, and, if `transfers` is false, takes no memory to the host.

  bool HasFitting(bool preserving, bool transfers) const {
    return absl::c_any_of(tried_, [&](const Tried& tried) {
      return (!preserving || tried.preserves()) && Fits(SmallestOf(tried.run)) &&
             (transfers || !Transfers(tried.names()));
    });
  }

  const AdviceQuestion& question_;
  ChangedRuns& runs_;
  proto::Advice advice_;
  proto::AdvisedRun as_is_;
  std::vector<proto::Proposal> proposals_;
  std::vector<Tried> tried_;  // without what failed
  std::set<Names> known_;     // what was run
  size_t combinations_ = 0;
  std::map<std::pair<Names, int64_t>, proto::AdvisedRun> with_value_;  // FindLargest()'s
  size_t values_run_ = 0;
};

}  // namespace

absl::StatusOr<proto::Advice> AdviseScript(const AdviceQuestion& question, ScriptRunner* runner,
                                           ProgressSink* progress) {
  ChangedRuns runs(question.script, question.key, question.value, runner, progress);
  ASSIGN_OR_RETURN(proto::Advice advice, ChangeSearch(question, &runs).Find());
  if (runs.has_ranks()) {
    advice.add_notes(
        "Every rank of the job was run; of each change, the rank that needs most counts.");
  }
  runner->AddCounts(&advice);
  return advice;
}

}  // namespace memreplay
