#include "report/ask/lint.h"

#include <algorithm>

#include "report/device/device_report.h"
#include "report/words/new_report.h"
#include "report/words/text.h"
#include "sim/settings/conf_lint.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

proto::Lint::Finding::Severity SeverityOf(LintSeverity severity) {
  switch (severity) {
    case LintSeverity::kNote: return proto::Lint::Finding::note;
    case LintSeverity::kWarning: return proto::Lint::Finding::warning;
    case LintSeverity::kError: break;
  }
  return proto::Lint::Finding::error;
}

}  // namespace

proto::Report LintReport(std::string_view conf, const TorchProfile& profile, bool is_given) {
  proto::Report report = NewReport("lint");
  proto::Lint& lint = *report.mutable_lint();
  lint.set_conf(CleanText(conf));
  *lint.mutable_torch() = DescribeChoice(profile, is_given);
  for (const LintFinding& finding : LintAllocatorConf(conf, profile)) {
    proto::Lint::Finding& out = *lint.add_findings();
    out.set_severity(SeverityOf(finding.severity));
    out.set_key(CleanText(finding.key));
    out.set_sentence(CleanText(finding.sentence));
  }
  return report;
}

bool HasErrors(const proto::Lint& lint) {
  return std::any_of(lint.findings().begin(), lint.findings().end(),
                     [](const proto::Lint::Finding& finding) {
                       return finding.severity() == proto::Lint::Finding::error;
                     });
}

}  // namespace memreplay
