#include "report/ask/script_search.h"

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

namespace memreplay {
namespace {

constexpr int64_t kNoneFails = std::numeric_limits<int64_t>::max();
constexpr int64_t kSecondValue = 8;     // tried after the first, to have a line to guess by
constexpr int64_t kFarthestGuess = 64;  // times the largest that fits

}  // namespace

proto::ScriptRow ScriptRowOf(const proto::RecordReport& report) {
  proto::ScriptRow row;
  row.set_seconds(report.seconds());
  row.set_spare(std::numeric_limits<int64_t>::max());
  bool failed = false;
  for (const proto::RecordedProcess& process : report.processes()) {
    failed = failed || !process.error().empty();
    if (!process.error().empty() && row.error().empty()) {
      row.set_error(process.error());
      row.set_error_text(process.error_text());
      row.set_error_place(process.error_place());
    }
    row.set_ooms(row.ooms() + process.ooms());
    for (const proto::RecordedCard& card : process.cards()) {
      row.set_peak_reserved(std::max(row.peak_reserved(), card.peak_reserved()));
      row.set_peak_allocated(std::max(row.peak_allocated(), card.peak_allocated()));
      row.set_spare(std::min(row.spare(), card.spare()));
      row.set_retries(row.retries() + card.retries());
    }
  }
  row.set_fits(row.ooms() == 0 && !failed && report.exit_status() == 0);
  return row;
}

absl::Status ScriptSearch::Try(const std::vector<int64_t>& values) {
  std::vector<int64_t> untried;
  for (const int64_t value : std::set<int64_t>(values.begin(), values.end())) {
    if (tried_.count(value) == 0) untried.push_back(value);
  }
  absl::StatusOr<std::vector<proto::ScriptRow>> rows = run_(untried);
  if (!rows.ok()) return rows.status();
  for (proto::ScriptRow& row : *rows) tried_.emplace(row.value(), std::move(row));
  return absl::OkStatus();
}

absl::StatusOr<int64_t> ScriptSearch::FindLargest(int64_t step, int64_t most) {
  most /= step;  // in steps from here on
  std::vector<int64_t> next = {1};
  if (tried_.empty()) next.push_back(std::min(kSecondValue, most));
  for (bool guess_is_good = true;;) {
    const Edge before = EdgeOf(step);
    for (int64_t& value : next) value *= step;
    if (const absl::Status tried = Try(next); !tried.ok()) return tried;
    const auto [fits, fails] = EdgeOf(step);
    if (fits == 0 || fails - fits <= 1 || fits >= most) return fits * step;

    // Before the first failure there is no gap to halve.
    if (before.fits > 0 && before.fails != kNoneFails) {
      guess_is_good = 2 * (fails - fits) <= before.fails - before.fits;
    }
    const int64_t end = std::min(fails, most + 1);  // not to be tried again
    next.clear();
    if (guess_is_good) {
      const int64_t guess = std::clamp(Guess(step, fits), fits + 1, end - 1);
      next = {guess, guess + 1, guess - 1};
      next.resize(static_cast<size_t>(std::clamp<int64_t>(at_once_, 1, 3)));
    } else {
      for (int64_t i = 1; i <= at_once_; ++i) {
        next.push_back(fits + (end - fits) * i / (at_once_ + 1));
      }
    }
    for (int64_t& value : next) value = std::clamp(value, fits + 1, end - 1);
  }
}

ScriptSearch::Edge ScriptSearch::EdgeOf(int64_t step) const {
  Edge edge{.fails = kNoneFails};
  for (const auto& [value, row] : tried_) {
    if (!row.fits()) {
      edge.fails = value / step;
      break;
    }
    edge.fits = value / step;
  }
  return edge;
}

// Returns where a line through the two largest values that fit reaches the GPU's memory.
int64_t ScriptSearch::Guess(int64_t step, int64_t fits) const {
  const auto above = tried_.upper_bound(fits * step);
  const proto::ScriptRow& last = std::prev(above)->second;
  if (std::prev(above) == tried_.begin()) return fits * kSecondValue;
  const proto::ScriptRow& other = std::prev(above, 2)->second;
  const int64_t more = last.peak_reserved() - other.peak_reserved();
  if (more <= 0) return fits * kSecondValue;
  const double per_value =
      static_cast<double>(more) / static_cast<double>(last.value() - other.value());
  const double guess =
      (static_cast<double>(last.value()) + static_cast<double>(last.spare()) / per_value) /
      static_cast<double>(step);
  return static_cast<int64_t>(std::min(guess, static_cast<double>(fits * kFarthestGuess)));
}

}  // namespace memreplay
