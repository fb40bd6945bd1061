#include "browser/session.h"

#include <algorithm>
#include <cstddef>
#include <thread>
#include <utility>

#include "hardware/cards.h"
#include "report/ask/diff.h"
#include "report/ask/file_report.h"
#include "report/ask/fit.h"
#include "report/ask/job.h"
#include "report/ask/oom.h"
#include "report/ask/page.h"
#include "report/ask/replay.h"
#include "report/ask/settings_text.h"
#include "report/ask/sweep.h"
#include "report/device/device_report.h"
#include "report/message/explain.h"
#include "report/message/log_scan.h"
#include "report/page/render_html.h"
#include "report/text/render.h"
#include "report/words/text.h"
#include "report/words/verdict.h"
#include "report/words/version.h"
#include "sim/settings/torch_profile.h"
#include "trace/bytes/byte_source.h"
#include "trace/formats/open_trace.h"
#include "trace/value/status_macros.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

Answer Failed(const absl::Status& status) {
  return {.status = kExitUnusable, .errors = StrCat(CleanText(ToStd(status.message())), "\n")};
}

absl::StatusOr<SettingsRequest> RequestOf(const proto::Question& question) {
  const std::string& command = question.command();
  SettingsRequest request;
  if (command == "inspect" || command == "diff") return request;
  if (!question.torch().empty()) {
    const absl::Status known = FindTorchProfile(question.torch()).status();
    if (!known.ok()) return Within(StrCat(command, ": --torch"), known);
    request.torch = question.torch();
  }
  if (!question.capacity().empty() && command != "fit") {
    const absl::Status set = SetCapacity(question.capacity(), &request);
    if (!set.ok()) return Within(StrCat(command, ": --capacity"), set);
  }
  if (command != "oom" && command != "replay") return request;
  request.torch_is_as_recorded = command == "oom";  // releases are compared with one recording
  if (!question.conf().empty()) request.conf = ConfOf(question.conf(0));
  return request;
}

std::vector<std::string> ConfsOf(const proto::Question& question) {
  std::vector<std::string> confs;
  for (const std::string& conf : question.conf()) confs.push_back(ConfOf(conf));
  return confs;
}

size_t Threads() { return std::max<size_t>(1, std::thread::hardware_concurrency()); }

}  // namespace

Answer ExplainLog(std::string_view name, std::string bytes) {
  const absl::StatusOr<std::unique_ptr<ByteSource>> source =
      ByteSource::FromBytes(std::move(bytes));
  if (!source.ok()) return Failed(Within(name, source.status()));
  LogScan scan;
  for (std::string_view piece = (*source)->Peek(1); !piece.empty(); piece = (*source)->Peek(1)) {
    scan.Add(piece);
    (*source)->Skip(piece.size());
  }
  if (const absl::Status& read = (*source)->status(); !read.ok()) {
    return Failed(Within(name, read));
  }
  const absl::StatusOr<proto::Report> report = Explain(&scan);
  if (!report.ok()) return Failed(Within(name, report.status()));
  return {.status = kExitBad, .text = RenderExplanationText(report->explanation())};
}

proto::Offers MakeOffers() {
  proto::Offers offers;
  offers.set_version(kVersion);
  for (const TorchProfile& profile : AllTorchProfiles()) {
    offers.add_releases(std::string(profile.release));
  }
  for (const Card& card : AllCards()) {
    proto::Offers::Card& offer = *offers.add_cards();
    offer.set_name(card.name);
    offer.set_title(card.title);
  }
  return offers;
}

void Session::Add(std::string name, std::string bytes) {
  File file{.name = std::move(name)};
  const absl::StatusOr<std::unique_ptr<ByteSource>> source =
      ByteSource::FromBytes(std::move(bytes));
  if (source.ok()) {
    absl::StatusOr<Trace> trace = OpenTrace(**source, file.name);
    file.error = trace.status();
    if (trace.ok()) file.trace = std::make_shared<const Trace>(*std::move(trace));
  } else {
    file.error = Within(file.name, source.status());
  }
  files_.push_back(std::move(file));
}

absl::StatusOr<const OpenedFile*> Session::Open(File& file, const SettingsRequest& request) {
  if (!file.error.ok()) return file.error;
  if (file.opened.has_value() && file.request == request) return &*file.opened;
  file.opened.reset();  // released before the next, which needs the memory
  ASSIGN_OR_RETURN(file.opened, OpenFile(file.name, file.trace, request));
  file.request = request;
  return &*file.opened;
}

absl::StatusOr<PageInput> Session::AskFile(File& file, const proto::Question& question,
                                           const SettingsRequest& request, ProgressSink* progress) {
  const std::string& command = question.command();
  progress->SetActivity(StrCat("preparing ", file.name));
  ASSIGN_OR_RETURN(const OpenedFile* opened, Open(file, request));
  const std::vector<std::string> confs = ConfsOf(question);
  progress->SetActivity(StrCat(command, " of ", file.name));
  if (command == "report") {
    const PageQuestion page = {
        .others = {}, .search = question.search(), .threads = Threads(), .progress = progress};
    return AskFilePage(file.name, *opened, request, confs, std::nullopt, page);
  }
  const auto ask = [&](const Study& study) -> absl::StatusOr<proto::DeviceReport> {
    if (command == "oom") return AskOom(study, {}, progress);
    if (command == "fit") return AskFit(study, confs, Threads(), progress);
    if (command == "inspect") return AskInspect(study, {.deep = true, .held = {}});
    if (command == "sweep") {
      SweepQuestion sweep;
      sweep.confs = confs;
      sweep.threads = Threads();
      sweep.progress = progress;
      return AskSweep(study, sweep);
    }
    ASSIGN_OR_RETURN(ReplayAnswer answer, AskReplay(study, StartPolicy::kRecorded, nullptr));
    return std::move(answer.report);
  };
  ASSIGN_OR_RETURN(proto::Report report,
                   AskDevices(command, file.name, *opened, std::nullopt, ask));
  return PageInput{std::move(report), {}};
}

Answer Session::AskDiff() const {
  if (files_.size() != 2) {
    return Failed(
        absl::InvalidArgumentError(StrCat("diff: expected two files, found ", files_.size())));
  }
  std::vector<DiffSide> sides;
  for (const File& file : files_) {
    if (!file.error.ok()) return Failed(file.error);
    absl::StatusOr<DiffSide> side = SideOf(file.trace, file.name);
    if (!side.ok()) return Failed(side.status());
    sides.push_back(*std::move(side));
  }
  const HeldOptions held{.top = kDiffStacks, .filter = ""};
  return {.status = kExitAnswered,
          .text = RenderDiffText(DiffReports(sides[0], sides[1], held)).text};
}

Answer Session::Ask(const proto::Question& question, ProgressSink* progress) {
  const std::string& command = question.command();
  constexpr std::string_view kCommands[] = {"report",  "oom",  "sweep", "fit",
                                            "inspect", "diff", "replay"};
  if (std::find(std::begin(kCommands), std::end(kCommands), command) == std::end(kCommands)) {
    return Failed(absl::InvalidArgumentError(StrCat("unknown command ", command)));
  }
  if (command == "diff") return AskDiff();
  const absl::StatusOr<SettingsRequest> request = RequestOf(question);
  if (!request.ok()) return Failed(request.status());
  Answer answer;
  JobFold job;
  std::vector<PageInput> pages;
  for (File& file : files_) {
    absl::StatusOr<PageInput> answered = AskFile(file, question, *request, progress);
    if (!answered.ok()) {
      const std::string message(answered.status().message());
      StrAppend(&answer.errors, CleanText(message), "\n");
      job.Add(FailedReport(command, file.name, message));
      continue;
    }
    job.Add(answered->report);
    StrAppend(&answer.text, answer.text.empty() ? "" : "\n", RenderText(answered->report).text);
    if (command == "report") pages.push_back(*std::move(answered));
  }
  answer.status = job.status();
  if (files_.size() > 1) {
    const std::string table = RenderJobText(job.Finish()).text;
    answer.text = StrCat(table, table.empty() ? "" : "\n", answer.text);
    answer.page = RenderJobPage(std::move(pages));
  } else if (!pages.empty()) {
    answer.page = RenderHtml(pages);
  }
  return answer;
}

}  // namespace memreplay
