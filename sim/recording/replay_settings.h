// Under which settings a trace is replayed: what was given on the command
// line, else what the file says, else PyTorch's defaults.
#ifndef MEMREPLAY_SIM_RECORDING_REPLAY_SETTINGS_H_
#define MEMREPLAY_SIM_RECORDING_REPLAY_SETTINGS_H_

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

// What the caller requires. Nothing: as the file says.
struct SettingsRequest {
  std::optional<std::string> conf;    // PYTORCH_CUDA_ALLOC_CONF
  std::optional<std::string> torch;   // release
  bool torch_is_as_recorded = false;  // a release alone leaves ReplaySettings::as_recorded
  std::optional<Bytes> capacity;      // of the device
  std::string capacity_note;          // where that is from, a sentence for the report
  bool unlimited = false;             // the device has no end, whatever the recording says
  std::optional<double> fraction;     // of it that PyTorch may use
  std::optional<AddressOrder> order;  // in which it hands addresses out
  bool operator==(const SettingsRequest&) const = default;
};

// `version` if given, else what the file says, if it is known, else what it was probably recorded
// by, else the default. Error: an unknown version.
absl::StatusOr<ProfileChoice> ChooseProfile(const Trace& trace,
                                            const std::optional<std::string>& version);

// All that a replay is under.
struct ReplaySettings {
  ProfileChoice torch;
  AllocatorConfig config;
  AllocatorConfig recorded_config;  // when the file was recorded, as far as it says
  std::optional<Bytes> capacity;    // absent: unlimited, or as recorded
  bool unlimited = false;           // requested: the recorded card's limit is left out
  AddressOrder order = AddressOrder::kChunksDownwards;  // of simulated devices
  std::optional<double> fraction;
  // Nothing was required and something was recorded: the run can be held
  // against the recording.
  bool as_recorded = false;
  std::vector<std::string> notes;  // sentences for the report
};

// Errors: InvalidArgument or NotFound: an unknown release, settings that this
// release of PyTorch rejects (its message), settings that are not modelled.
absl::StatusOr<ReplaySettings> ResolveSettings(const Trace& trace, const SettingsRequest& request);

// Recorded on an Ascend NPU: torch_npu, which has an allocator of its own, is among the frames.
// O(texts).
bool IsOfNpu(const Trace& trace);
// Of the settings of such a recording.
inline constexpr std::string_view kNpuNote =
    "recorded on an Ascend NPU by torch_npu, whose allocator is not modelled: its events are "
    "exact, "
    "but a replay follows the rules of CUDA's allocator, so it differs";

// The order in which addresses were handed out where the file was recorded: as it says, else
// upwards below 2^40 (Windows, WSL), else, and for programs, Linux's.
AddressOrder OrderOf(const Trace& trace);

// The settings that the file lists, over `config`.
void ApplyRecordedSettings(const RecordedSettings& recorded, AllocatorConfig* config);

// The reverse: what a snapshot taken under `config` lists.
RecordedSettings DescribeSettings(const AllocatorConfig& config);

// The release whose allocator is nearest: 2.0's for PyTorch 1.x.
std::string AllocatorRelease(std::string_view torch_version);

}  // namespace memreplay

#endif  // MEMREPLAY_SIM_RECORDING_REPLAY_SETTINGS_H_
