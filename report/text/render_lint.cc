#include <algorithm>

#include "report/text/render.h"
#include "trace/value/strings.h"

namespace memreplay {

std::string RenderLintText(const proto::Lint& lint) {
  const size_t errors = std::count_if(lint.findings().begin(), lint.findings().end(),
                                      [](const proto::Lint::Finding& finding) {
                                        return finding.severity() == proto::Lint::Finding::error;
                                      });
  const size_t warnings = std::count_if(
      lint.findings().begin(), lint.findings().end(), [](const proto::Lint::Finding& finding) {
        return finding.severity() == proto::Lint::Finding::warning;
      });
  std::string text = StrCat("PyTorch ", lint.torch().release(), " (", lint.torch().why(), ") ",
                            errors != 0 ? "rejects these settings" : "accepts these settings", ": ",
                            errors, errors == 1 ? " error, " : " errors, ", warnings,
                            warnings == 1 ? " warning\n" : " warnings\n");
  for (const proto::Lint::Finding& finding : lint.findings()) {
    StrAppend(&text, "  ", proto::Lint::Finding::Severity_Name(finding.severity()), ": ",
              finding.key(), finding.key().empty() ? "" : ": ", finding.sentence(), "\n");
  }
  return text;
}

}  // namespace memreplay
