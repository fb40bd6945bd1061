// Everything in which PyTorch's allocator differs between releases, one row per
// release. The logic reads fields; it never compares versions.
#ifndef MEMREPLAY_SIM_TORCH_PROFILE_H_
#define MEMREPLAY_SIM_TORCH_PROFILE_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace memreplay {

struct TorchProfile {
  std::string_view release;  // "2.11"
};

// All rows, oldest first.
absl::Span<const TorchProfile> AllTorchProfiles();
// The row of "2.6", "2.6.0" or "v2.6.1+cu124". NotFound lists what is known.
absl::StatusOr<const TorchProfile*> FindTorchProfile(std::string_view version);
// The newest row proven against PyTorch's own library.
const TorchProfile& DefaultTorchProfile();

}  // namespace memreplay

#endif  // MEMREPLAY_SIM_TORCH_PROFILE_H_
