// The targets that get random bytes: one function for each way by which outside bytes come in. The
// libFuzzer binary and the test that runs the corpus share them.
#pragma once

#include <string>
#include <string_view>

#include "absl/types/span.h"
#include "sim/settings/torch_profile.h"

namespace memreplay::fuzz {

struct Target {
  std::string_view name;  // also its folder below corpus/
  // Returns, whatever the bytes are. A crash, a sanitizer's complaint, a broken invariant and an
  // endless loop are findings.
  void (*run)(std::string_view bytes);
};
// Each group is a library and a fuzzer, so that a changed line anywhere leaves the others as they
// are: the readers, the program language and the settings parser; the allocator; messages and whole
// commands.
absl::Span<const Target> ReaderTargets();
absl::Span<const Target> AllocatorTargets();
absl::Span<const Target> CommandTargets();
// Returns what the target "requests" makes of the bytes under a release, as a schedule in flat JSON
// lines; empty if nothing.
std::string RequestsText(std::string_view bytes, const TorchProfile& profile);
// Returns null if no target has that name.
inline const Target* FindTarget(absl::Span<const Target> targets, std::string_view name) {
  for (const Target& target : targets) {
    if (target.name == name) return &target;
  }
  return nullptr;
}

}  // namespace memreplay::fuzz
