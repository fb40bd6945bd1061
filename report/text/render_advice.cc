#include <algorithm>

#include "absl/algorithm/container.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "report/text/render.h"
#include "report/words/holding.h"
#include "report/words/lines.h"
#include "report/words/sizes.h"
#include "report/words/text.h"
#include "report/words/verdict.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

using AdviceRow = proto::Advice::Row;

std::string_view AtLeast(const proto::Advice& advice) {
  return advice.is_lower_bound() ? "at least " : "";
}

// Returns what the goal is, and how far the script is from it.
std::string AdviceGoal(const proto::Advice& advice) {
  const AdviceRow& now = advice.as_is();
  std::string text =
      StrCat(advice.value() > 0 ? StrCat("With ", CleanText(advice.key()), "=", advice.value())
                                : "As it is",
             ", it needs ", AtLeast(advice), FormatSize(now.smallest_bytes()),
             " of memory for PyTorch's allocator");
  if (advice.goal_bytes() == 0) return StrCat(text, ".\n");
  StrAppend(&text, "; ", advice.card().empty() ? "the GPU" : CleanText(advice.card()), " has ",
            FormatSize(advice.goal_bytes()));
  if (now.fits())
    return StrCat(text, ": it fits, with ", FormatSize(now.spare_bytes()), " to spare.\n");
  if (now.survives()) return StrCat(text, ".\n");
  return StrCat(text, ": it is ", AtLeast(advice), FormatSize(-now.spare_bytes()), " short.\n");
}

// Returns the best row; nullptr if there is none that saves anything.
const AdviceRow* BestOf(const proto::Advice& advice) {
  if (advice.rows().empty()) return nullptr;
  const AdviceRow& best = advice.rows(0);
  const bool saves =
      best.smallest_bytes() > 0 && best.smallest_bytes() < advice.as_is().smallest_bytes();
  const bool helps = IsTried(best) && !SavesNothing(best, advice);
  return helps && (best.survives() || saves) ? &best : nullptr;
}

// Returns the cheapest change that is enough but cannot be written; nullptr if there is none.
const AdviceRow* UnwrittenOf(const proto::Advice& advice) {
  const auto found = absl::c_find_if(advice.rows(), [](const AdviceRow& row) {
    return row.error().empty() && !row.unwritten().empty() && row.fits();
  });
  return found == advice.rows().end() ? nullptr : &*found;
}

std::string AdviceVerdict(const proto::Advice& advice) {
  if (advice.as_is().fits()) return "";
  const AdviceRow* const found = BestOf(advice);
  if (advice.goal_bytes() == 0) {
    if (found == nullptr) return "";
    return StrCat("It needs least with ", CleanText(found->change()), ": ", AtLeast(advice),
                  FormatSize(found->smallest_bytes()), " instead of ",
                  FormatSize(advice.as_is().smallest_bytes()), ".\n");
  }
  if (MaySurvive(advice)) {
    std::string text = "The figures are lower bounds: the whole run may need more than there is.";
    if (!advice.as_is().survives()) {
      StrAppend(&text, " What was recorded does not run out of memory with ",
                CleanText(found->change()), ", which leaves at most ",
                FormatSize(found->spare_bytes()),
                found->preserves() ? "." : "; but this changes what is computed.");
    }
    return text + "\n";
  }
  if (found != nullptr && found->fits()) {
    const AdviceRow& best = *found;
    return StrCat("It fits with ", CleanText(best.change()), ", ", FormatSize(best.spare_bytes()),
                  " to spare",
                  best.is_confirmed() ? ", and has run on a simulated GPU of that size" : "",
                  best.preserves() ? ".\n" : "; but this changes what is computed.\n");
  }
  if (found != nullptr && found->survives()) {
    return StrCat("It may fit with ", CleanText(found->change()), ": ",
                  FormatSize(found->spare_bytes()),
                  " to spare by an edit of the recording, which is an estimate and may be a fifth "
                  "too low. advise --card NAME -- SCRIPT runs the script with the change.",
                  found->preserves() ? "\n" : " It changes what is computed.\n");
  }
  std::string text = "Nothing that was tried makes it fit.";
  if (found != nullptr) {
    StrAppend(&text, " It needs least with ", CleanText(found->change()),
              found->preserves() ? ", " : " (another result), ", AtLeast(advice),
              FormatSize(-found->spare_bytes()), " short.");
  }
  if (const AdviceRow* const other = UnwrittenOf(advice); other != nullptr) {
    StrAppend(&text, " ", CleanText(other->change()),
              " would, but it was made in the running process and is not written as a patch.");
  }
  if (advice.bound_bytes() > 0) {
    StrAppend(&text,
              advice.source() == proto::Advice::run
                  ? " Parameters, gradients and the optimizer's state alone take "
                  : " What is neither an activation nor a temporary takes ",
              FormatSize(advice.bound_bytes()), " at once",
              advice.bound_bytes() > advice.goal_bytes()
                  ? ", which is more than there is: no change to activations can be enough"
                  : "",
              ".");
  }
  if (advice.source() == proto::Advice::run) {
    StrAppend(&text, StrCat(" What is left is a smaller batch",
                            advice.key().empty() ? " (--batch_size=? finds the largest)" : "",
                            ", more GPUs (--ranks N), another one (--card), or to train fewer "
                            "parameters (LoRA), which is another training."));
  }
  return text + "\n";
}

// "24"; of which larger values were not run: "24 or more"; of what was recorded: "at most 24".
std::string LargestValue(const AdviceRow& row, bool is_lower_bound) {
  if (row.largest() == 0) return row.largest_is_proven() ? "none" : "?";
  if (is_lower_bound) return row.largest_is_proven() ? StrCat("at most ", row.largest()) : "?";
  return StrCat(row.largest(), row.largest_is_proven() ? "" : " or more");
}

bool HasLargest(const proto::Advice& advice) {
  const auto has = [](const AdviceRow& row) {
    return row.largest() > 0 || row.largest_is_proven();
  };
  return has(advice.as_is()) || absl::c_any_of(advice.rows(), has);
}

Table AdviceTable(const proto::Advice& advice) {
  const bool is_bound = advice.is_lower_bound();
  Table table{
      "",
      {{"#", Unit::kLabel, advice.source() == proto::Advice::run ? "  %2s" : ""},
       {is_bound ? "at least" : "needs", Unit::kSize, "  %10s"},
       {"reserved", Unit::kSize, "  %10s"},
       {"allocated", Unit::kSize, "  %10s"},
       {"saved", Unit::kSize, "  %10s"},
       {is_bound ? "at most" : "to spare", Unit::kSize, advice.goal_bytes() > 0 ? "  %10s" : ""},
       {"largest", Unit::kLabel, HasLargest(advice) ? "  %10s" : ""},
       {"results", Unit::kWords, "  %-7s"},
       {"change: what it costs"}},
      true};
  const auto add = [&](const std::string& number, const AdviceRow& row, const std::string& change) {
    table.Add({number, row.smallest_bytes(), row.peak_reserved_bytes(), row.peak_allocated_bytes(),
               row.saved_bytes(), row.spare_bytes(), LargestValue(row, is_bound),
               row.preserves() ? "same" : "CHANGED",
               StrCat(CleanText(change), row.cost().empty() ? "" : ": ", CleanText(row.cost()))});
  };
  add("", advice.as_is(), "as it is");
  for (int i = 0; i < advice.rows_size(); ++i) {
    const AdviceRow& row = advice.rows(i);
    if (IsTried(row) && !SavesNothing(row, advice)) add(StrCat(i + 1), row, row.change());
  }
  return table;
}

// Says which peaks are others than those on a GPU without a limit.
std::string_view PeaksOnCard(const proto::Advice& advice) {
  if (advice.source() == proto::Advice::edit) {
    return advice.goal_bytes() > 0
               ? " or, where that is too much and memory does not run out, on that GPU"
               : "";
  }
  const bool is_confirmed =
      absl::c_any_of(advice.rows(), [](const AdviceRow& row) { return row.is_confirmed(); });
  return !is_confirmed ? ""
         : advice.as_is().fits()
             ? ", and on that GPU of the first settings, which were run there"
             : ", and on that GPU of the first rows that fit, which were run there";
}

// Returns how to make the change of the first row, as it was made: a command, a patch, or lines to
// write.
std::string HowToMake(const AdviceRow& row, const proto::Advice& advice) {
  std::string text;
  if (!row.environment().empty() || !row.arguments().empty()) {
    StrAppend(&text, "\nRun for ", CleanText(row.change()), ":\n\n    ");
    std::vector<std::string> words;
    for (const std::string& variable : row.environment()) {
      const size_t value = variable.find('=') + 1;
      words.push_back(StrCat(variable.substr(0, value), ShellWord(variable.substr(value))));
    }
    for (const auto* each : {&advice.program(), &row.arguments()}) {
      for (const std::string& word : *each) words.push_back(ShellWord(word));
    }
    StrAppend(&text, CleanText(absl::StrJoin(words, " ")), "\n");
  }
  if (!row.patch().empty()) {
    StrAppend(&text, "\nThe patch for ", CleanText(row.change()), ", which patch -p1 applies in ",
              row.patch_folder().empty() ? "the script's folder" : CleanText(row.patch_folder()),
              " (advise --patch 1 prints it alone):\n\n");
    std::string_view rest = row.patch();
    while (!rest.empty()) {  // tabs and ends of lines are a part of it
      const size_t end = std::min(rest.find_first_of("\t\n"), rest.size());
      StrAppend(&text, CleanText(rest.substr(0, end)), rest.substr(end, 1));
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
  }
  if (!row.lines().empty()) {
    StrAppend(&text, "\nTo write for ", CleanText(row.change()), ":\n\n");
    for (const std::string& line : row.lines()) {
      StrAppend(&text, line.empty() ? "" : "    ", CleanText(line), "\n");
    }
  }
  return StrCat(text, "\nResults: ", CleanText(row.preserves_text()), ".\n");
}

}  // namespace

std::string RenderAdvice(std::string_view what, const proto::Advice& advice,
                         const std::vector<Line>& caveats) {
  Text head(StrCat(CleanText(what), "\n", AdviceVerdict(advice), AdviceGoal(advice)));
  head.AddAll(caveats);
  const std::string diagnosis = DiagnosisText(advice.diagnosis());
  std::string text = StrCat(head.text, CleanText(diagnosis), diagnosis.empty() ? "" : "\n", "\n");
  const bool is_lower_bound = advice.is_lower_bound();
  AddTable(AdviceTable(advice), &text);
  for (const AdviceRow& row : advice.rows()) {
    const std::string change = CleanText(row.change());
    if (!row.error().empty()) {
      StrAppend(&text, "  could not be tried: ", change, ": ", CleanText(row.error(), 300), "\n");
    } else if (SavesNothing(row, advice)) {
      StrAppend(&text, "  saves nothing: ", change, "\n");
    } else if (!row.unwritten().empty()) {
      StrAppend(&text, "  not written as a patch: ", change, ": ", CleanText(row.unwritten(), 300),
                "; made in the running process, it needs ", FormatSize(row.smallest_bytes()), "\n");
    }
  }
  StrAppend(&text,
            is_lower_bound ? "\nat least: what PyTorch's allocator needs for what was recorded."
                           : "\nneeds: what is enough for PyTorch's allocator.",
            " reserved, allocated: the peaks on a GPU without a limit", PeaksOnCard(advice),
            ". saved: of reserved memory.",
            is_lower_bound && advice.goal_bytes() > 0
                ? " at most: what is left of the GPU, if anything."
                : "",
            "\n");
  if (const double seconds = advice.as_is().step_seconds(); seconds > 0) {
    StrAppend(&text, "\nA training step takes ",
              seconds < 1 ? absl::StrFormat("%.3g ms", 1000 * seconds)
                          : absl::StrFormat("%.3g s", seconds),
              " as it is. Times are estimates from the GPU's peak rates; docs/advise.md compares "
              "such estimates with published times.\n");
  }
  if (HasLargest(advice)) {
    StrAppend(&text, "\nlargest: the largest ", CleanText(advice.key()), " with which ",
              is_lower_bound ? "memory does not run out in what was recorded" : "it fits", ".\n");
  }
  const AdviceRow* const found = BestOf(advice);
  const bool has_best = found != nullptr && !advice.as_is().survives() &&
                        (found->survives() || advice.goal_bytes() == 0);
  if (has_best) text += HowToMake(*found, advice);
  for (const std::string& note : advice.notes()) StrAppend(&text, "\n", CleanText(note), "\n");
  StrAppend(&text, "\nFound by ",
            advice.source() == proto::Advice::run ? "running the script"
            : advice.key().empty()                ? "editing the recording"
                                                  : "editing the recordings");
  if (advice.source() == proto::Advice::run) {
    StrAppend(&text, ": ", FormatCount(advice.runs(), "run"), ", ",
              FormatCount(advice.from_cache(), "result"), " from the cache, ",
              absl::StrFormat("%.1f s", advice.seconds()));
  }
  return text + ".\n";
}

std::string RenderCardChoice(std::string_view what, const proto::CardChoice& choice) {
  std::vector<std::string> fitting;
  Table table{"",
              {{"GPU", Unit::kLabel, "  %-20s"},
               {"has", Unit::kSize, "  %10s"},
               {"needs", Unit::kSize, "  %10s"},
               {"to spare", Unit::kSize, "  %10s"},
               {"results", Unit::kWords, "  %-7s"},
               {"change: what it costs"}},
              true};
  for (const proto::Advice& advice : choice.cards()) {
    const std::string card = CleanText(advice.card());
    const AdviceRow* best = &advice.as_is();
    const AdviceRow* const changed = BestOf(advice);
    if (!best->fits() && changed != nullptr) best = changed;
    const bool is_changed = best != &advice.as_is();
    const std::string change = is_changed ? CleanText(best->change()) : "";
    if (best->fits()) {
      fitting.push_back(StrCat(card, is_changed ? StrCat(" with ", change) : " as it is"));
    }
    table.Add({card, advice.goal_bytes(), best->smallest_bytes(), best->spare_bytes(),
               best->preserves() ? "same" : "CHANGED",
               !is_changed            ? best->fits() ? "as it is" : "nothing that was tried helps"
               : best->cost().empty() ? change
                                      : StrCat(change, ": ", CleanText(best->cost()))});
  }
  std::string text = StrCat(CleanText(what), "\n",
                            fitting.empty() ? "Nothing that was tried makes it fit any of them."
                                            : StrCat("It fits ", absl::StrJoin(fitting, "; "), "."),
                            "\n\n");
  AddTable(table, &text);
  return text +
         "\nhas, needs: memory for PyTorch's allocator. advise with one --card has all changes "
         "that were tried, and how to make them; its runs are in the cache.\n";
}

}  // namespace memreplay
