// Parses settings as users write them, and says what is wrong with them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "hardware/outside_figures.h"
#include "proto/report.pb.h"
#include "sim/recording/replay_settings.h"
#include "sim/settings/torch_profile.h"

namespace memreplay {

// Sets the requested capacity: "80GiB", "unlimited", or the name of a GPU such as "rtx-4090", which
// stands for what CUDA's context leaves of its memory. Error: InvalidArgument for anything else, or
// for a number below 1 MiB without a unit.
absl::Status SetCapacity(std::string_view text, SettingsRequest* request);

// Returns what lies outside PyTorch: `context` if given, else what is assumed for the GPU that
// `capacity` names, else for one of that many multiprocessors (0: unknown). `capacity` is the text
// that SetCapacity() had; of a GPU that it names, `request` then has what a given context leaves.
AssumedOutside SetContext(std::optional<Bytes> context, std::string_view capacity,
                          int64_t multiprocessors, SettingsRequest* request);

// Returns a settings string without the name of its variable:
// "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True" gives "expandable_segments:True".
std::string ConfOf(std::string_view text);

// Reports the findings about a settings string. `is_given`: the release was requested; else it is
// the default.
proto::Report LintReport(std::string_view conf, const TorchProfile& profile, bool is_given);

// Returns whether this release rejects the string.
bool HasErrors(const proto::Lint& lint);

}  // namespace memreplay
