#include <map>

#include "absl/strings/str_format.h"
#include "report/text/render.h"
#include "report/words/render_json.h"
#include "report/words/sizes.h"
#include "report/words/text.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

std::string PhaseName(const std::string& phase) {
  return phase.empty() ? "before the first phase" : CleanText(phase);
}
std::string Count(uint64_t count) { return FormatCount(static_cast<int64_t>(count)); }
std::string Size(uint64_t bytes) { return FormatSize(Bytes(bytes)); }

}  // namespace

std::string RenderProgramCheck(const proto::ProgramCheck& check) {
  std::string text =
      StrCat(check.file(), ": ", FormatCount(static_cast<int64_t>(check.events()), "event"),
             "; at most ", FormatSizeExactly(static_cast<int64_t>(check.peak_requested())),
             " requested at once, in ", PhaseName(check.peak_phase()), ".\n\n");
  const std::map<std::string, uint64_t> kinds(check.events_by_kind().begin(),
                                              check.events_by_kind().end());
  for (const auto& [kind, count] : kinds) {
    absl::StrAppendFormat(&text, "  %-18s %s\n", kind, Count(count));
  }
  absl::StrAppendFormat(&text, "\n  %12s  %10s  %22s  %s\n", "events", "peak", "live at the end",
                        "phase");
  for (const proto::PhaseCheck& phase : check.phases()) {
    absl::StrAppendFormat(
        &text, "  %12s  %10s  %22s  %s\n", Count(phase.events()), Size(phase.peak_requested()),
        phase.leaks() == 0 ? "-" : StrCat(Count(phase.leaks()), " of ", Size(phase.leaked_bytes())),
        PhaseName(phase.phase()));
  }
  return text;
}

std::string RenderProgramCheckJson(proto::ProgramCheck check) {
  check.set_file(CleanText(check.file()));
  check.set_peak_phase(CleanText(check.peak_phase()));
  for (proto::PhaseCheck& phase : *check.mutable_phases()) {
    phase.set_phase(CleanText(phase.phase()));
  }
  return RenderJson(check, JsonLayout::kIndented);
}

}  // namespace memreplay
