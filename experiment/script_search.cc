#include "experiment/script_search.h"

#include <algorithm>
#include <limits>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "report/words/record_faults.h"
#include "trace/value/bounded.h"
#include "trace/value/status_macros.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

constexpr int64_t kNoneFails = std::numeric_limits<int64_t>::max();
constexpr int64_t kSecondValue = 8;     // tried after the first, to have a line to guess by
constexpr int64_t kFarthestGuess = 64;  // times the largest that fits

// Returns the letters and digits of a text, in lower case: names are written with dashes on a
// command line, with underscores in Python and with spaces in a sentence.
std::string OnlyLetters(std::string_view text) {
  std::string letters;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (absl::ascii_isalnum(byte)) letters += absl::ascii_tolower(byte);
  }
  return letters;
}

}  // namespace

proto::ScriptRow ScriptRowOf(const proto::RecordReport& report) {
  proto::ScriptRow row;
  row.set_seconds(report.seconds());
  row.set_spare(std::numeric_limits<int64_t>::max());
  for (const proto::RecordedProcess& process : report.processes()) {
    if (!process.error().empty() && row.error().empty()) {
      row.set_error(process.error());
      row.set_error_text(process.error_text());
      row.set_error_place(process.error_place());
      row.set_error_function(process.error_function());
    }
    row.set_ooms(BoundedSum(row.ooms(), process.ooms()));
    row.set_late_state(std::max(row.late_state(), process.late_state()));
    for (const proto::RecordedCard& card : process.cards()) {
      row.set_peak_reserved(std::max(row.peak_reserved(), card.peak_reserved()));
      row.set_peak_allocated(std::max(row.peak_allocated(), card.peak_allocated()));
      row.set_spare(std::min(row.spare(), card.spare()));
      row.set_retries(BoundedSum(row.retries(), card.retries()));
    }
  }
  if (report.processes().empty()) row.set_spare(0);
  row.set_refusal(report.refusal());
  row.set_fits(EndOf(report) <= RunEnd::kStopped);
  return row;
}

bool SaysToRaise(std::string_view refusal, std::string_view key) {
  const std::string text = OnlyLetters(refusal);
  const std::string name = OnlyLetters(key);
  if (name.empty()) return false;
  for (const std::string_view verb : {"increase", "increasing", "raise", "raising"}) {
    if (text.find(StrCat(verb, name)) != std::string::npos) return true;
  }
  return false;
}

absl::Status ScriptSearch::Try(const std::vector<int64_t>& values) {
  std::vector<int64_t> untried;
  for (const int64_t value : std::set<int64_t>(values.begin(), values.end())) {
    if (tried_.count(value) == 0) untried.push_back(value);
  }
  ASSIGN_OR_RETURN(std::vector<proto::ScriptRow> rows, run_(untried));
  for (size_t i = 0; i < untried.size(); ++i) tried_.emplace(untried[i], std::move(rows[i]));
  return absl::OkStatus();
}

absl::StatusOr<int64_t> ScriptSearch::FindLargest(int64_t step, int64_t most) {
  most /= step;  // in steps from here on
  std::vector<int64_t> next = {1};
  if (tried_.empty()) next.push_back(std::min(kSecondValue, most));
  for (bool guess_is_good = true;;) {
    const Edge before = EdgeOf(step);
    for (int64_t& value : next) value *= step;
    RETURN_IF_ERROR(Try(next));
    const Edge edge = EdgeOf(step);
    const auto& [fits, lower, fails] = edge;
    if (lower == 0 || fails - lower <= 1 || lower >= most) return fits * step;

    // Before the first failure there is no gap to halve.
    if (before.lower > 0 && before.fails != kNoneFails) {
      guess_is_good = 2 * (fails - lower) <= before.fails - before.lower;
    }
    const int64_t end = std::min(fails, most + 1);  // not to be tried again
    next.clear();
    if (guess_is_good) {
      const int64_t guess = std::clamp(Guess(step, edge), lower + 1, end - 1);
      next = {guess, guess + 1, guess - 1};
      next.resize(static_cast<size_t>(std::clamp<int64_t>(at_once_, 1, 3)));
    } else {
      for (int64_t i = 1; i <= at_once_; ++i) {
        next.push_back(lower + (end - lower) * i / (at_once_ + 1));
      }
    }
    for (int64_t& value : next) value = std::clamp(value, lower + 1, end - 1);
  }
}

ScriptSearch::Edge ScriptSearch::EdgeOf(int64_t step) const {
  Edge edge{.fails = kNoneFails};
  for (const auto& [value, row] : tried_) {
    if (!row.fits() && !row.too_small()) {
      edge.fails = value / step;
      break;
    }
    edge.lower = value / step;
    if (row.fits()) edge.fits = edge.lower;
  }
  return edge;
}

// Returns where a line through the two largest values that fit reaches the GPU's memory; without
// such a line, one that is much larger or, once one fails, in the middle.
int64_t ScriptSearch::Guess(int64_t step, const Edge& edge) const {
  const int64_t without_line = edge.fails == kNoneFails
                                   ? edge.lower * kSecondValue
                                   : edge.lower + (edge.fails - edge.lower) / 2;
  const auto above = tried_.upper_bound(edge.lower * step);
  const auto last = std::prev(above);
  if (last == tried_.begin()) return without_line;
  const auto other = std::prev(last);
  if (!last->second.fits() || !other->second.fits()) return without_line;
  const int64_t more = last->second.peak_reserved() - other->second.peak_reserved();
  if (more <= 0) return without_line;
  const double per_value =
      static_cast<double>(more) / static_cast<double>(last->first - other->first);
  const double guess =
      (static_cast<double>(last->first) + static_cast<double>(last->second.spare()) / per_value) /
      static_cast<double>(step);
  return static_cast<int64_t>(std::min(guess, static_cast<double>(edge.lower * kFarthestGuess)));
}

}  // namespace memreplay
