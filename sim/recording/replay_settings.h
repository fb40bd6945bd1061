// The settings under which a trace is replayed: those on the command line, else those in the file,
// else PyTorch's defaults.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "sim/device/simulated_device.h"
#include "sim/recording/torch_inference.h"
#include "sim/settings/allocator_config.h"
#include "sim/settings/torch_profile.h"
#include "trace/value/trace.h"
#include "trace/value/units.h"

namespace memreplay {

// What the caller requires. What is absent comes from the file.
struct SettingsRequest {
  std::optional<std::string> conf;    // PYTORCH_CUDA_ALLOC_CONF
  std::optional<std::string> torch;   // release
  bool torch_is_as_recorded = false;  // setting only a release keeps ReplaySettings::as_recorded
  std::optional<Bytes> capacity;      // of the device
  std::string capacity_note;          // where it comes from, a sentence for the report
  bool unlimited = false;             // the device has no limit, whatever the recording says
  std::optional<double> fraction;     // share of it that PyTorch may use
  std::optional<AddressOrder> order;  // in which it assigns addresses
  bool operator==(const SettingsRequest&) const = default;
};

// Returns the profile of `version` if given, else of the release in the file if it is known, else
// of the inferred release, else the default. Error: an unknown version.
absl::StatusOr<ProfileChoice> ChooseProfile(const Trace& trace,
                                            const std::optional<std::string>& version);

// All settings of a replay.
struct ReplaySettings {
  ProfileChoice torch;
  AllocatorConfig config;
  AllocatorConfig recorded_config;  // when the file was recorded, as far as the file says
  std::optional<Bytes> capacity;    // absent: unlimited, or as recorded
  std::optional<Bytes> total;       // what `fraction` is of; absent: the capacity
  bool unlimited = false;           // requested: the recorded GPU's limit is ignored
  AddressOrder order = AddressOrder::kChunksDownwards;  // of simulated devices
  std::optional<double> fraction;
  // Whether nothing was required and something was recorded, so that the run can be compared with
  // the recording.
  bool as_recorded = false;
  std::vector<std::string> notes;  // sentences for the report

  // Takes another device, without a limit if `of` is absent; `fraction` is then of that.
  void TakeDevice(std::optional<Bytes> of) {
    capacity = of;
    total.reset();
  }
};

// Returns the settings of a replay. Errors: InvalidArgument or NotFound for an unknown release,
// settings that this release of PyTorch rejects (its message), or settings that are not modelled.
absl::StatusOr<ReplaySettings> ResolveSettings(const Trace& trace, const SettingsRequest& request);

// Returns whether the trace was recorded on an Ascend NPU: torch_npu, which has its own allocator,
// is among the frames. O(texts).
bool IsOfNpu(const Trace& trace);
// A note on the settings of such a recording.
inline constexpr std::string_view kNpuNote =
    "recorded on an Ascend NPU by torch_npu, whose allocator is not modelled: its events are "
    "exact, "
    "but a replay follows the rules of CUDA's allocator, so it differs";

// Returns the order in which addresses were assigned where the file was recorded: the one in the
// file, else upwards below 2^40 (Windows, WSL), else, and for schedules that were written, Linux's.
AddressOrder OrderOf(const Trace& trace);

// Applies the settings that the file lists to `config`.
void ApplyRecordedSettings(const RecordedSettings& recorded, AllocatorConfig* config);

// Returns what a snapshot taken under `config` lists.
RecordedSettings DescribeSettings(const AllocatorConfig& config);

// Returns the release whose allocator is most similar: 2.0's for PyTorch 1.x.
std::string AllocatorRelease(std::string_view torch_version);

}  // namespace memreplay
