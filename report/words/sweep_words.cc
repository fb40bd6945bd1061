#include "report/words/sweep_words.h"

#include <vector>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "report/words/answer.h"
#include "report/words/sizes.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

std::string Ties(const proto::Sweep& sweep) {
  if (sweep.ties() == 0) return "";
  return sweep.ties() + 1 == sweep.rows_size()
             ? "; all others give the same result"
             : StrCat("; ", FormatCount(sweep.ties()),
                      sweep.ties() == 1 ? " other gives the same result"
                                        : " others give the same result");
}

std::string BestOf(const proto::Sweep& sweep, const proto::Unseen& unseen) {
  if (sweep.rows_size() == 0) return "no events were recorded, so no setting can be tried";
  const proto::SweepRow& best = sweep.rows(0);
  const proto::SweepRow& current = sweep.current();
  if (!best.refused().empty()) return "this PyTorch release rejects all of these settings";
  if (best.peak_reserved_bytes() == 0 && sweep.lower_bounds().peak_live_bytes() == 0) {
    return "nothing is allocated on this device";
  }
  const int64_t gain = current.peak_reserved_bytes() - best.peak_reserved_bytes();
  if (!best.is_current() && gain > 0 && !best.oom() && !current.oom() &&
      best.alloc_retries() == current.alloc_retries() &&
      static_cast<double>(gain) <=
          kNegligibleGain * static_cast<double>(current.peak_reserved_bytes())) {
    return StrCat("none of ", FormatCount(sweep.rows_size(), "setting"),
                  " is worth a change: peak reserved ", AtLeast(unseen, true),
                  FormatSize(current.peak_reserved_bytes()), " under the current settings, ",
                  ConfName(current.conf(), current.memory_fraction()), ", ",
                  FormatSize(best.peak_reserved_bytes()), " at best");
  }
  std::string text = best.oom()
                         ? StrCat("OUT OF MEMORY under each of ", FormatCount(sweep.rows_size()),
                                  " settings, the least often with ")
                         : StrCat("best of ", FormatCount(sweep.rows_size(), "setting"), ": ");
  StrAppend(&text, ConfName(best.conf(), best.memory_fraction()), ", peak reserved ",
            AtLeast(unseen, !best.oom()), FormatSize(best.peak_reserved_bytes()),
            OtherOrderText(best.peak_reserved_bytes(), best.other_order_peak_reserved_bytes()));
  if (best.is_current()) return text + ", the current settings";
  if (best.peak_reserved_bytes() == current.peak_reserved_bytes() && best.oom() == current.oom()) {
    return StrCat(text, ", no less than the current settings, ",
                  ConfName(current.conf(), current.memory_fraction()));
  }
  StrAppend(&text, " instead of ", FormatSize(current.peak_reserved_bytes()),
            PercentChange(best.peak_reserved_bytes() - current.peak_reserved_bytes(),
                          current.peak_reserved_bytes()));
  if (current.oom() && !best.oom()) {
    StrAppend(&text, "; it survives, whereas memory runs out at event ",
              FormatCount(current.first_oom_event()), " under ",
              ConfName(current.conf(), current.memory_fraction()));
  }
  return text;
}

// Returns "3.55 GiB", the smaller sizes that also work, and the error bar.
std::string SafeSize(const proto::Fits::Row& row) {
  std::vector<std::string> limits;
  if (row.safe_bytes() != row.smallest_bytes()) {
    limits.push_back(
        StrCat(FormatSize(row.smallest_bytes()), " also works, but not every size above it"));
  }
  if (row.safe_bytes() != row.other_order_safe_bytes()) {
    limits.push_back(StrCat(row.other_order_safe_bytes() == 0
                                ? std::string("no size is enough")
                                : FormatSize(row.other_order_safe_bytes()),
                            " with addresses in the opposite order"));
  }
  std::string text = FormatSize(row.safe_bytes());
  if (!limits.empty()) StrAppend(&text, " (", absl::StrJoin(limits, "; "), ")");
  return text;
}

}  // namespace

std::string ConfName(std::string_view conf, double fraction) {
  std::string name = SettingsName(conf);
  if (fraction > 0) StrAppend(&name, absl::StrFormat(", fraction %g", fraction));
  return name;
}

std::string SweepSentence(const proto::Sweep& sweep, const proto::Unseen& unseen) {
  std::string text = BestOf(sweep, unseen);
  return text.rfind("none of", 0) == 0 ? text : text + Ties(sweep);
}

std::string FitSentence(const proto::Fits& fits, const proto::Unseen& unseen) {
  const proto::Fits::Row* best = nullptr;
  const proto::Fits::Row* current = nullptr;
  for (const auto& row : fits.rows()) {
    if (row.is_current()) current = &row;
    if (row.safe_bytes() == 0) continue;
    if (best == nullptr || row.safe_bytes() < best->safe_bytes()) best = &row;
  }
  if (best == nullptr && fits.lower_bounds().peak_live_bytes() == 0) {
    return "nothing is allocated on this device";
  }
  if (best == nullptr) return "no device size is enough under these settings";
  std::string text = StrCat("needs ", AtLeast(unseen, true), SafeSize(*best), " under ",
                            ConfName(best->conf(), best->memory_fraction()));
  if (current != nullptr && current != best) {
    StrAppend(&text, "; ",
              current->safe_bytes() == 0 ? std::string("no size is enough") : SafeSize(*current),
              " under the current settings (",
              ConfName(current->conf(), current->memory_fraction()), ")");
  }
  return text;
}

}  // namespace memreplay
