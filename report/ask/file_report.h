// Opens a file, and answers one question about its devices.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "proto/report.pb.h"
#include "report/ask/page.h"
#include "report/page/render_html.h"
#include "sim/recording/replay_settings.h"
#include "sim/study/study.h"
#include "trace/value/trace.h"

namespace memreplay {

// Opens a file, and studies its devices. Errors, which name the file: OpenTrace()'s,
// StudyTrace()'s.
absl::StatusOr<OpenedFile> OpenFile(const std::string& file, const SettingsRequest& request = {},
                                    size_t threads = 1);
// Does the same with what was read of a file already, or written for the purpose.
absl::StatusOr<OpenedFile> OpenFile(std::string_view file,
                                    const std::shared_ptr<const Trace>& trace,
                                    const SettingsRequest& request = {}, size_t threads = 1);

// Returns the report of one file: what `ask` says about each device in order, or about `device`
// alone; AskOom()'s reports of devices that ran out of memory come first. Stops at the first error
// of `ask` and returns it. Error: NotFound if the file has nothing about that device.
absl::StatusOr<proto::Report> AskDevices(
    std::string_view command, const std::string& file, const OpenedFile& opened,
    std::optional<int64_t> device,
    absl::FunctionRef<absl::StatusOr<proto::DeviceReport>(const Study& study)> ask);

// Returns what a page shows of one file, which was opened under `request`: AskPage() of each
// device, with one more run under each of `confs`. Errors: ResolveSettings()'s, AskPage()'s,
// AskDevices()'s.
absl::StatusOr<PageInput> AskFilePage(const std::string& file, const OpenedFile& opened,
                                      const SettingsRequest& request,
                                      const std::vector<std::string>& confs,
                                      std::optional<int64_t> device, PageQuestion question);

}  // namespace memreplay
