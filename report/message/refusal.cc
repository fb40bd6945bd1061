#include "report/message/refusal.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "report/message/explain.h"
#include "report/message/facts.h"
#include "report/words/text.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

constexpr size_t kMaxRefusal = 400;  // bytes

bool IsAboutGpuMemory(FormKind kind) {
  switch (kind) {
    case FormKind::kDevice:
    case FormKind::kAsync:
    case FormKind::kSilentDevice:
    case FormKind::kPinned:
    case FormKind::kServing: return true;
    default: return false;
  }
}

// Returns the line that says why memory was too little; "" if none does.
std::string RefusalIn(const LogExtract& extract) {
  if (extract.form == nullptr || !IsAboutGpuMemory(extract.form->kind)) return "";
  const std::string_view text = extract.window;
  const size_t begin = text.rfind('\n', extract.anchor) + 1;  // 0 if there is none
  const size_t end = std::min(text.find('\n', extract.anchor), text.size());
  return CleanText(text.substr(begin, end - begin), kMaxRefusal);
}

// Explains the error that ended a process.
proto::Explanation ExplanationOf(const proto::RecordedProcess& process, const LogExtract& error) {
  std::vector<SourceFrame> frames;
  for (const proto::Explanation::Frame& frame : process.error_frames()) {
    frames.push_back({frame.file(), frame.line(), frame.function(), frame.code()});
  }
  Facts facts = ReadFacts(error, frames);
  facts.knows_outside = process.has_card();
  facts.is_recorded = true;
  return ExplainFacts(facts);
}

}  // namespace

void AddRefusals(LogScan* printed, proto::RecordReport* report) {
  bool failed = report->exit_status() != 0;
  bool ran_out = false;
  for (proto::RecordedProcess& process : *report->mutable_processes()) {
    ran_out = ran_out || process.ooms() > 0;
    if (process.error().empty()) continue;
    failed = true;
    LogScan error;
    error.Add(StrCat(process.error(), ": ", process.error_text()));
    const LogExtract extract = error.Finish();
    process.set_refusal(RefusalIn(extract));
    if (!process.refusal().empty() && !report->has_explanation()) {
      *report->mutable_explanation() = ExplanationOf(process, extract);
    }
    if (report->refusal().empty()) report->set_refusal(process.refusal());
  }
  if (ran_out) {
    report->clear_refusal();
  } else if (failed && report->stopped_by().empty() && report->refusal().empty()) {
    report->set_refusal(RefusalIn(printed->Finish()));
  }
}

}  // namespace memreplay
