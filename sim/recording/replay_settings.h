// The settings under which a trace is replayed: those on the command line, else those in the file,
// else PyTorch's defaults.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "sim/device/simulated_device.h"
#include "sim/settings/allocator_config.h"
#include "sim/settings/torch_profile.h"
#include "trace/value/trace.h"
#include "trace/value/units.h"

namespace memreplay {

// Why a release of PyTorch was chosen.
enum class ProfileReason : uint8_t {
  kGiven,    // requested
  kInFile,   // the file names it
  kDefault,  // a written schedule that names none
  // The following are inferred.
  kLayout,          // the newest of the releases that write such files
  kReproduces,      // the newest of them under which the replay is exact
  kReproducesMost,  // the one of them under which it stays exact for longest
  kNewestKey,       // no release writes such files; the oldest that writes all their keys
  kUnknownLayout,   // no release writes all their keys; the default
};

// A release and why it was chosen; report/words/answer.h has the words.
struct ProfileChoice {
  const TorchProfile* profile = nullptr;
  ProfileReason reason = ProfileReason::kGiven;
  // For inferred ones, the releases that write such files, oldest first.
  std::vector<const TorchProfile*> fitting = {};
  // What older and newer releases would have written differently: "external_annotations", "no
  // compile_context", "its settings".
  std::vector<std::string> evidence = {};
  // For kReproduces and kReproducesMost, the newest of `fitting`, and the recorded event at which
  // its replay differs.
  const TorchProfile* rejected = nullptr;
  uint64_t rejected_at = 0;

  bool inferred() const { return reason >= ProfileReason::kLayout; }
};

// Narrows the releases down by the keys that the file has and lacks, and by the keys of its
// settings string. Returns the newest if several fit. For a file that fits none (edited, or made by
// another tool) it returns the release that its newest key requires, and for one without evidence
// the default.
ProfileChoice InferTorchProfile(const Trace& trace);

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

// Returns what a snapshot taken under `config` lists.
RecordedSettings DescribeSettings(const AllocatorConfig& config);

// Returns the release whose allocator is most similar: 2.0's for PyTorch 1.x.
std::string AllocatorRelease(std::string_view torch_version);

}  // namespace memreplay
