// Makes a Report of the findings about a settings string.
#pragma once

#include <string_view>

#include "proto/report.pb.h"
#include "sim/settings/torch_profile.h"

namespace memreplay {

// Reports findings. `is_given`: the release was requested; else it is the default.
proto::Report LintReport(std::string_view conf, const TorchProfile& profile, bool is_given);

// Returns whether this release rejects the string.
bool HasErrors(const proto::Lint& lint);

}  // namespace memreplay
