
#include "absl/strings/ascii.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "report/text/render.h"
#include "report/text/render_table.h"
#include "report/words/lines.h"
#include "report/words/sizes.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

void RenderWhere(const proto::Explanation& explanation, std::string* out) {
  if (explanation.has_frame()) {
    const proto::Explanation::Frame& frame = explanation.frame();
    AddRow(out, "in your code", frame.file(),
           frame.line() > 0 ? StrCat(":", frame.line()) : std::string(),
           frame.function().empty() ? std::string() : StrCat(" in ", frame.function()),
           frame.code().empty() ? std::string() : StrCat(": ", frame.code()));
  }
  for (const std::string& sentence : explanation.frame_sentences()) {
    AddRow(out, "the traceback", sentence);
  }
}

void RenderProcesses(const proto::Explanation& explanation, std::string* out) {
  Table table{"processes on the GPU", {{"bytes", Unit::kSize, "  %10s"}, {"process"}}};
  for (const proto::Explanation::Process& process : explanation.processes()) {
    table.Add({process.has_bytes() ? Cell(process.bytes()) : "?",
               StrCat("process ", process.pid(), process.name().empty() ? "" : ", ", process.name(),
                      process.is_own() ? ": this one" : "")});
  }
  AddTable(table, out);
}

}  // namespace

std::string RenderExplanationText(const proto::Explanation& explanation) {
  const std::string verdict = absl::AsciiStrToUpper(
      absl::StrReplaceAll(proto::Explanation::Verdict_Name(explanation.verdict()), {{"_", " "}}));
  std::string out =
      StrCat(verdict, ": ", explanation.sentence(), ".\n\n  what to do, in this order\n");
  int number = 0;
  for (const proto::Explanation::Action& action : explanation.actions()) {
    StrAppend(&out, "  ", ++number, ". ", action.sentence(), "\n");
  }
  StrAppend(&out, "\n  why\n");
  std::string form = explanation.form();
  if (!explanation.since().empty()) {
    const char first = explanation.since()[0];
    StrAppend(&form, ", a form since ", absl::ascii_isdigit(first) ? "PyTorch " : "",
              explanation.since());
  }
  if (explanation.has_gpu()) StrAppend(&form, "; GPU ", explanation.gpu());
  if (explanation.has_rank()) StrAppend(&form, "; rank ", explanation.rank());
  AddRow(&out, "read as", form);
  for (const proto::Explanation::Evidence& evidence : explanation.evidence()) {
    AddRow(&out, "evidence", evidence.sentence());
  }
  if (explanation.has_settings_give_bytes()) {
    AddRow(&out, "settings give", "at most ", FormatSize(explanation.settings_give_bytes()),
           explanation.has_settings_give_percent()
               ? absl::StrFormat(" (%.1f %% of the GPU)", explanation.settings_give_percent())
               : std::string());
  }
  RenderWhere(explanation, &out);
  if (!explanation.conf().empty()) AddRow(&out, "settings current", explanation.conf());
  for (const std::string& note : explanation.notes()) AddRow(&out, "note", note);
  Table figures{"figures of the text", {{"bytes", Unit::kSize, "  %10s"}, {"what"}}};
  for (const proto::Explanation::Figure& figure : explanation.figures()) {
    figures.Add({figure.bytes(), figure.words()});
  }
  AddTable(figures, &out);
  RenderProcesses(explanation, &out);
  return out;
}

}  // namespace memreplay
