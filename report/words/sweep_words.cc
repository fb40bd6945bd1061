#include "report/words/sweep_words.h"

#include "absl/strings/str_format.h"
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
  if (sweep.rows_size() == 0) return "nothing to try";
  const proto::SweepRow& best = sweep.rows(0);
  const proto::SweepRow& current = sweep.current();
  if (!best.refused().empty()) return "this PyTorch release rejects all of these settings";
  if (best.peak_reserved_bytes() == 0 && sweep.lower_bounds().peak_live_bytes() == 0) {
    return "nothing is allocated on this device";
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

}  // namespace

std::string ConfName(std::string_view conf, double fraction) {
  std::string name = SettingsName(conf);
  if (fraction > 0) StrAppend(&name, absl::StrFormat(", fraction %g", fraction));
  return name;
}

std::string SweepSentence(const proto::Sweep& sweep, const proto::Unseen& unseen) {
  return BestOf(sweep, unseen) + Ties(sweep);
}

}  // namespace memreplay
