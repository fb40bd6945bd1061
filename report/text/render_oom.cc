#include <algorithm>
#include <string_view>
#include <tuple>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "report/table/tables.h"
#include "report/text/render.h"
#include "report/words/lines.h"
#include "report/words/names.h"
#include "report/words/sizes.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

constexpr int kMaxFreeLists = 8;
constexpr int kMaxPinnedShown = 5;
constexpr int kMaxLiveShown = 5;
constexpr int kMaxCallers = 3;

std::string Where(const google::protobuf::RepeatedField<int64_t>& pool, int64_t stream) {
  return StrCat(PoolName(pool), ", ", StreamName(stream));
}

void RenderUse(const proto::OutOfMemory& oom, std::string* out) {
  const proto::MemoryUse& use = oom.use();
  AddTable(UseTable(use), out);
  if (use.private_pool_bytes() > 0) {
    AddRow(out, "private pools", FormatSize(use.private_pool_bytes()), " of it, ",
           FormatSize(use.private_pool_free_bytes()), " of that free");
  }
  if (use.pending_before_bytes() > 0) {
    AddRow(out, "pending before", FormatSize(use.pending_before_bytes()),
           " were waiting for other streams when the request arrived");
  }
}

// Appends the categories of a recording; `bytes` are as requested.
void RenderCategoryBytes(const proto::Categories& categories, std::string* out) {
  std::vector<HeldRow> rows;
  for (const auto& [category, bytes] : categories.bytes_by_category()) {  // in any order
    rows.push_back({bytes, CategoryNoun(category)});
  }
  absl::c_sort(rows, [](const HeldRow& a, const HeldRow& b) {
    return std::tie(b.bytes, a.who.words) < std::tie(a.bytes, b.who.words);
  });
  AddTable(HeldTable("live by category, as requested", "category", rows, 0), out);
}

void RenderLive(const proto::OutOfMemory& oom, std::string* out) {
  std::vector<HeldRow> categories, stacks;
  for (const proto::HeldBytes& held : oom.categories()) {
    categories.push_back({held.bytes(), CategoryNoun(held.category()), held.allocations()});
  }
  for (const proto::HeldBytes& held : oom.live()) {
    if (std::ssize(stacks) == kMaxLiveShown) break;
    stacks.push_back({held.bytes(), held.stack().summary(), held.allocations()});
  }
  AddTable(HeldTable("live by category", "category", categories, 0), out);
  Table table = HeldTable("live by stack", "stack", stacks, 0);
  if (oom.live_stacks() > kMaxLiveShown) {
    table.note = StrCat("and ", FormatCount(oom.live_stacks() - kMaxLiveShown, "more stack"));
  }
  AddTable(table, out);
}

void RenderSteps(const proto::OutOfMemory& oom, std::string* out) {
  if (oom.steps().steps() == 0) return;
  const std::string_view step = oom.steps().may_be_layers() ? "repeat" : "step";
  AddRow(out, StrCat(step, "s"), FormatCount(oom.steps().steps()), " before it, with ",
         FormatCount(oom.steps().allocations_per_step(), "allocation"), " each, found by ",
         StepSourceName(oom.steps().source()), "; live memory grows by ",
         FormatSize(oom.steps().growth_bytes_per_step()), " per ", step,
         oom.steps().may_be_layers() ? "; these may be the layers of one pass" : "");
  if (oom.has_leak()) {
    AddRow(out, "left behind", FormatSize(oom.leak().left_bytes()), " in ",
           FormatCount(oom.leak().left_allocations(), "allocation"), " by ",
           oom.leak().stack().summary());
  }
}

// Appends the script's own frames, from the one that the summary begins with outwards.
void RenderCallers(const proto::Stack& stack, std::string* out) {
  for (int i = 0; i < std::min(stack.own_size(), kMaxCallers); ++i) {
    AddRow(out, "", i == 0 ? "at " : "called from ", stack.frames(stack.own(i)));
  }
  if (const int folded = stack.own_size() - kMaxCallers; folded > 0) {
    AddRow(out, "", "called from ", FormatCount(folded, "more frame"));
  }
}

void RenderWhere(const proto::Explanation& explanation, std::string* out) {
  if (explanation.has_frame()) {
    const proto::Explanation::Frame& frame = explanation.frame();
    AddRow(out, "in your code", frame.file(), frame.line() > 0 ? StrCat(":", frame.line()) : "",
           frame.function().empty() ? "" : StrCat(" in ", frame.function()),
           frame.code().empty() ? "" : StrCat(": ", frame.code()));
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

void RenderOom(const proto::DeviceReport& device, Text* answer) {
  const proto::OutOfMemory& oom = device.oom();
  std::string* out = &answer->text;
  std::string asked = FormatSizeExactly(oom.requested_bytes());
  if (oom.segment_bytes() != oom.requested_bytes()) {
    StrAppend(&asked, ", for which PyTorch asks the driver for ", FormatSize(oom.segment_bytes()));
  }
  AddRow(out, "requested", asked);
  AddRow(out, "obtainable", FormatSizeExactly(oom.obtainable_bytes()));
  if (oom.event_index() >= 0) {
    AddRow(out, "when", "event ", FormatCount(oom.event_index()),
           oom.recorded() ? ", as recorded" : "", "; ", Where(oom.segment_pool_id(), oom.stream()),
           ", ", SegmentTypeName(oom.segment_type()));
    AddRow(out, "by", oom.stack().summary());
    RenderCallers(oom.stack(), out);
  }
  for (const std::string& note : oom.notes()) AddRow(out, "note", note);
  RenderSteps(oom, out);
  RenderUse(oom, out);
  if (oom.categories_size() == 0) RenderCategoryBytes(device.categories(), out);
  RenderLive(oom, out);
  AddTable(FreeTable(oom.largest_free(), kMaxFreeLists), out);
  AddTable(PinnedTable(oom, kMaxPinnedShown), out);
  AddTable(HelpTable(oom), answer);
  AddTable(ServingTable(device.advice()), out);
}

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
               : "");
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
