#include "report/message/explain.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "report/message/advice.h"
#include "report/message/facts.h"
#include "report/message/judge.h"
#include "report/words/new_report.h"
#include "report/words/sizes.h"
#include "report/words/text.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

constexpr size_t kMaxText = 400;  // of a quotation

// Says where in the text a figure was read, if it is known.
template <typename Figure>
void SetPlace(const Facts& facts, const Amount& amount, Figure* figure) {
  if (amount.length == 0 || !facts.window_begin.has_value()) return;
  figure->set_offset(static_cast<int64_t>(*facts.window_begin + amount.at));
  figure->set_length(static_cast<int64_t>(amount.length));
}

void Quote(const Facts& facts, const Sums& sums, proto::Explanation* explanation) {
  for (size_t i = 0; i < facts.amounts.size(); ++i) {
    if (!facts.amounts[i].has_value()) continue;
    proto::Explanation::Figure& figure = *explanation->add_figures();
    figure.set_name(std::string(QuantityName(static_cast<Quantity>(i))));
    figure.set_words(std::string(QuantityWords(static_cast<Quantity>(i))));
    figure.set_bytes(facts.amounts[i]->bytes);
    figure.set_rounding_bytes(facts.amounts[i]->rounding);
    SetPlace(facts, *facts.amounts[i], &figure);
  }
  for (const CardProcess& process : facts.processes) {
    proto::Explanation::Process& row = *explanation->add_processes();
    row.set_pid(process.pid);
    if (process.has_bytes) row.set_bytes(process.bytes.bytes);
    row.set_name(CleanText(process.name, kMaxText));
    row.set_is_own(process.pid == sums.own_pid);
    SetPlace(facts, process.bytes, &row);
  }
  if (facts.frame.has_value()) {
    proto::Explanation::Frame& frame = *explanation->mutable_frame();
    frame.set_file(CleanText(facts.frame->file, kMaxText));
    frame.set_line(facts.frame->line);
    frame.set_function(CleanText(facts.frame->function, kMaxText));
    frame.set_code(CleanText(facts.frame->code, kMaxText));
  }
  for (std::string& sentence : FrameSentences(facts)) {
    explanation->add_frame_sentences(std::move(sentence));
  }
  explanation->set_card(CleanText(facts.card, kMaxText));
  explanation->set_conf(CleanText(facts.conf, kMaxText));
}

void AddNotes(const Facts& facts, const Sums& sums, const Judgement& judgement,
              proto::Explanation* explanation) {
  if (facts.form->kind == FormKind::kAsync) {
    explanation->add_notes(StrCat("cudaMallocAsync is on",
                                  facts[Circumstance::kComfy] ? ", by ComfyUI," : "",
                                  " and takes expandable_segments out of force; ComfyUI turns it "
                                  "on by itself, and --disable-cuda-malloc off"));
  }
  if (!facts.shape.empty()) {
    explanation->add_notes(
        StrCat("what was requested is computed from the shape and type in the text: ",
               CleanText(facts.shape, kMaxText)));
  }
  if (facts[Circumstance::kExpandableIsOn]) {
    explanation->add_notes("the text sets expandable_segments:True already");
  }
  if (judgement.verdict != proto::Explanation::no_numbers && sums.unallocated.has_value() &&
      facts[Quantity::kTried].has_value() && judgement.settings_give.has_value() &&
      judgement.verdict != proto::Explanation::fragmentation) {
    explanation->add_notes(
        "PyTorch's own hint at the end of its message (try setting ... to avoid fragmentation) is "
        "printed whatever the figures are");
  }
  if (facts.failures > 1) {
    explanation->add_notes(
        StrCat("the last of ", FormatCount(facts.failures, "refused request"), " in this text",
               facts.different < facts.failures
                   ? StrCat(", ", FormatCount(facts.different), " of them different")
                   : "",
               "; earlier ones may have been the cause of later ones"));
  }
}

constexpr size_t kMaxRefusal = 400;  // bytes

bool IsAboutGpuMemory(FormKind kind) {
  return kind == FormKind::kDevice || kind == FormKind::kAsync || kind == FormKind::kPinned ||
         kind == FormKind::kSilentDevice || kind == FormKind::kServing;
}

// Returns the line that says why memory was too little; "" if none does.
std::string RefusalIn(const LogExtract& extract) {
  if (extract.form == nullptr || !IsAboutGpuMemory(extract.form->kind)) return "";
  const std::string_view text = extract.window;
  const size_t begin = text.rfind('\n', extract.anchor) + 1;  // 0 if there is none
  const size_t end = std::min(text.find('\n', extract.anchor), text.size());
  return CleanText(text.substr(begin, end - begin), kMaxRefusal);
}

// Says what the live process said of itself: that each step leaves more behind, and who holds it.
// What fits the figures of the error alone, such as a setting, would only postpone the end.
void SayGrowth(const proto::Holding::Growth& growth, proto::Explanation* explanation) {
  if (growth.holders().empty()) return;
  const proto::Holding::Holder& holder = growth.holders(0);
  explanation->set_verdict(proto::Explanation::leak);
  explanation->set_sentence(
      StrCat("each ", CleanText(growth.step()), " leaves ", FormatSize(growth.bytes()),
             " behind, held by ", CleanText(holder.path()), ": ", FormatSize(holder.bytes()),
             " after ", FormatCount(growth.steps()), " of them; ", CleanText(holder.remedy())));
  explanation->clear_settings_give_bytes();
  explanation->clear_settings_give_percent();
  explanation->clear_evidence();
  explanation->clear_actions();
  proto::Explanation::Action& action = *explanation->add_actions();
  action.set_kind("leak");
  action.set_sentence(StrCat("Free what ", CleanText(holder.path()), " keeps: ",
                             CleanText(holder.remedy()), ". A setting only postpones the end."));
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
  facts.window_begin.reset();  // the text is in no file
  proto::Explanation explanation = ExplainFacts(facts);
  if (process.ooms() > 0) SayGrowth(process.holding().growth(), &explanation);
  return explanation;
}

}  // namespace

proto::Explanation ExplainFacts(const Facts& facts) {
  const Sums sums = Add(facts);
  const Judgement judgement = Judge(facts, sums);
  const std::vector<Advice> advice = Advise(facts, sums, judgement);
  proto::Explanation explanation;
  explanation.set_verdict(judgement.verdict);
  explanation.set_sentence(StrCat(judgement.happened, "; ", advice.front().brief));
  explanation.set_form(std::string(facts.form->name));
  explanation.set_since(std::string(facts.form->since));
  if (facts.gpu.has_value()) explanation.set_gpu(*facts.gpu);
  if (facts.rank.has_value()) explanation.set_rank(*facts.rank);
  explanation.set_failures(facts.failures);
  explanation.set_different_failures(facts.different);
  Quote(facts, sums, &explanation);
  for (const auto& evidence : judgement.evidence) *explanation.add_evidence() = evidence;
  if (judgement.settings_give.has_value()) {
    explanation.set_settings_give_bytes(judgement.settings_give->bytes);
    const auto& capacity = facts[Quantity::kCapacity];
    if (capacity.has_value() && capacity->bytes > 0) {
      explanation.set_settings_give_percent(100.0 *
                                            static_cast<double>(judgement.settings_give->bytes) /
                                            static_cast<double>(capacity->bytes));
    }
  }
  for (const Advice& one : advice) {
    if (facts.is_recorded && (one.kind == "record" || one.kind == "snapshot")) continue;
    proto::Explanation::Action& action = *explanation.add_actions();
    action.set_kind(one.kind);
    action.set_sentence(one.sentence);
  }
  AddNotes(facts, sums, judgement, &explanation);
  return explanation;
}

absl::StatusOr<proto::Report> Explain(LogScan* scan) {
  const LogExtract extract = scan->Finish();
  if (extract.form == nullptr) {
    return absl::InvalidArgumentError(
        "expected an error text or a log that says that memory ran out; found none of the known "
        "forms (docs/oom.md lists them)");
  }
  proto::Report report = NewReport("explain");
  report.set_format("message");
  *report.mutable_explanation() = ExplainFacts(ReadFacts(extract));
  return report;
}

absl::StatusOr<proto::Report> ExplainText(std::string_view text) {
  LogScan scan;
  scan.Add(text);
  return Explain(&scan);
}

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
