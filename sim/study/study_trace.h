// Studies the devices of an opened file: chooses their settings, and finds what the recording must
// reveal for that.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "sim/recording/replay_settings.h"
#include "sim/study/study.h"
#include "trace/value/trace.h"

namespace memreplay {

// An open file: its content, and its devices under some settings.
struct OpenedFile {
  std::shared_ptr<const Trace> trace;                 // as read, or Explanation::trace
  ReplaySettings settings;                            // for every device
  std::vector<std::unique_ptr<const Study>> devices;  // in the order of trace->devices
};

// Studies every device under the settings of ResolveSettings(). If the release is inferred and
// several fit the layout, each is tried on the recorded events, the newest first. The first under
// which every event and final block is as recorded is chosen, else the one that gets furthest. This
// takes one replay if the newest is right, and at most one for each that fits; the study keeps the
// right one. If none of them is right, the other releases are tried. If none is right, what the
// recording leaves open may be the reason: the first of AllHypotheses() that explains it is taken.
// With more than one of `threads`, what the allocations of the first device with events are for is
// sought at the same time.
absl::StatusOr<OpenedFile> StudyTrace(const std::shared_ptr<const Trace>& trace,
                                      const SettingsRequest& request, size_t threads = 1);

}  // namespace memreplay
