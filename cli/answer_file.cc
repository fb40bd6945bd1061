#include "cli/answer_file.h"

#include <utility>

#include "report/ask/device_report.h"
#include "sim/recording/release_evidence.h"
#include "trace/formats/open_trace.h"
#include "trace/value/strings.h"

namespace memreplay {

absl::StatusOr<std::shared_ptr<Trace>> OpenShared(const std::string& file) {
  absl::StatusOr<Trace> opened = OpenTrace(file);
  if (!opened.ok()) return opened.status();
  return std::make_shared<Trace>(*std::move(opened));
}

absl::StatusOr<OpenedFile> OpenWithSettings(const std::string& file,
                                            const SettingsRequest& request) {
  absl::StatusOr<std::shared_ptr<Trace>> trace = OpenShared(file);
  if (!trace.ok()) return trace.status();
  absl::StatusOr<ReplaySettings> settings = ResolveSettingsByReplay(*trace, request);
  if (!settings.ok()) return settings.status();
  return OpenedFile{*std::move(trace), *std::move(settings)};
}

absl::StatusOr<proto::Report> ReportDevices(
    std::string_view command, const std::string& file, const Trace& trace,
    std::optional<int64_t> device,
    absl::FunctionRef<absl::StatusOr<proto::DeviceReport>(size_t index)> answer) {
  proto::Report report = StartReport(command, file, trace);
  for (size_t index = 0; index < trace.devices.size(); ++index) {
    if (device.has_value() && trace.devices[index].device != *device) continue;
    absl::StatusOr<proto::DeviceReport> answered = answer(index);
    if (!answered.ok()) return answered.status();
    *report.add_devices() = *std::move(answered);
  }
  if (device.has_value() && report.devices().empty()) {
    return absl::NotFoundError(StrCat(file, ": has no data for device ", *device));
  }
  return report;
}

}  // namespace memreplay
