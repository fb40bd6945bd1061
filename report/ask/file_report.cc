#include "report/ask/file_report.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "report/ask/oom.h"
#include "report/device/device_report.h"
#include "report/words/verdict.h"
#include "trace/formats/open_trace.h"
#include "trace/value/status_macros.h"
#include "trace/value/strings.h"

namespace memreplay {

absl::StatusOr<OpenedFile> OpenFile(const std::string& file, const SettingsRequest& request,
                                    size_t threads) {
  ASSIGN_OR_RETURN(Trace trace, OpenTrace(file));
  return OpenFile(file, std::make_shared<const Trace>(std::move(trace)), request, threads);
}

absl::StatusOr<OpenedFile> OpenFile(std::string_view file,
                                    const std::shared_ptr<const Trace>& trace,
                                    const SettingsRequest& request, size_t threads) {
  absl::StatusOr<OpenedFile> opened = StudyTrace(trace, request, threads);
  return opened.ok() ? std::move(opened) : Within(file, opened.status());
}

absl::StatusOr<proto::Report> AskDevices(
    std::string_view command, const std::string& file, const OpenedFile& opened,
    std::optional<int64_t> device,
    absl::FunctionRef<absl::StatusOr<proto::DeviceReport>(const Study& study)> ask) {
  proto::Report report = StartReport(command, file, *opened.trace);
  for (const std::unique_ptr<const Study>& study : opened.devices) {
    if (device.has_value() && study->device() != *device) continue;
    ASSIGN_OR_RETURN(proto::DeviceReport answered, ask(*study));
    *report.add_devices() = std::move(answered);
  }
  if (device.has_value() && report.devices().empty()) {
    return absl::NotFoundError(StrCat(file, ": has no data for device ", *device));
  }
  // If a file is examined for out of memory, the devices that ran out come first.
  std::stable_partition(report.mutable_devices()->begin(), report.mutable_devices()->end(),
                        [](const proto::DeviceReport& answered) {
                          return answered.mode() == proto::Mode::oom && RanOut(answered.oom());
                        });
  for (const proto::DeviceReport& answered : report.devices()) {
    if (AsksAdvice(answered) && !report.has_advice()) *report.mutable_advice() = answered.advice();
  }
  AddFaults(&report);
  AddDiagnoses(&report);
  return report;
}

absl::StatusOr<PageInput> AskFilePage(const std::string& file, const OpenedFile& opened,
                                      const SettingsRequest& request,
                                      const std::vector<std::string>& confs,
                                      std::optional<int64_t> device, PageQuestion question) {
  for (const std::string& conf : confs) {
    SettingsRequest other = request;
    other.conf = conf;
    // Use the release of the page's own run, however it was determined.
    other.torch = std::string(opened.settings.torch.profile->release);
    absl::StatusOr<ReplaySettings> settings = ResolveSettings(*opened.trace, other);
    if (!settings.ok()) return Within(file, settings.status());
    settings->torch = opened.settings.torch;
    question.others.push_back(*std::move(settings));
  }
  PageInput page;
  ASSIGN_OR_RETURN(page.report, AskDevices("report", file, opened, device, [&](const Study& study) {
                     return AskPage(study, question, &page.runs.emplace_back());
                   }));
  return page;
}

}  // namespace memreplay
