// What the commands share that answer, device by device, about one file.
#ifndef MEMREPLAY_CLI_ANSWER_FILE_H_
#define MEMREPLAY_CLI_ANSWER_FILE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "proto/report.pb.h"
#include "sim/recording/replay_settings.h"
#include "trace/value/trace.h"

namespace memreplay {

// A trace, for the schedules of its devices to share. Errors: OpenTrace()'s.
absl::StatusOr<std::shared_ptr<Trace>> OpenShared(const std::string& file);

struct OpenedFile {
  std::shared_ptr<const Trace> trace;
  ReplaySettings settings;
};
// Errors: OpenTrace()'s and ResolveSettingsByReplay()'s.
absl::StatusOr<OpenedFile> OpenWithSettings(const std::string& file,
                                            const SettingsRequest& request);

// A report of what `answer` says of each device of the file, of `device` alone
// where it is given. `answer` is called in order with positions in trace.devices; its
// first error is the answer. Error: NotFound, nothing of `device` in the file.
absl::StatusOr<proto::Report> ReportDevices(
    std::string_view command, const std::string& file, const Trace& trace,
    std::optional<int64_t> device,
    absl::FunctionRef<absl::StatusOr<proto::DeviceReport>(size_t index)> answer);

}  // namespace memreplay

#endif  // MEMREPLAY_CLI_ANSWER_FILE_H_
