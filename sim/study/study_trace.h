// The devices of an opened file, each to be studied: under which settings, and what of its
// recording had to be found out for that.
#ifndef MEMREPLAY_SIM_STUDY_STUDY_TRACE_H_
#define MEMREPLAY_SIM_STUDY_STUDY_TRACE_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "sim/recording/replay_settings.h"
#include "sim/study/study.h"
#include "trace/value/trace.h"

namespace memreplay {

// The devices of an opened file, with the settings of all of them.
struct StudiedTrace {
  ReplaySettings settings;                            // of every device
  std::vector<std::unique_ptr<const Study>> devices;  // as trace->devices
};

// Settings are ResolveSettings()'s. Where the release is inferred and the layout fits several,
// those are tried on the recorded events, the newest first: the first under which every
// event and final block is as recorded, else the one that comes furthest. One
// replay where the newest is right, at most one for each that fits; the one that is right is the
// study's own. Where none of them is right, one of the others may be. Where none is right, private
// pools that are gone may be why: FindGonePools().
absl::StatusOr<StudiedTrace> StudyTrace(const std::shared_ptr<const Trace>& trace,
                                        const SettingsRequest& request);

// A file that is open: what is in it, and its devices under some settings.
struct OpenedFile {
  std::shared_ptr<const Trace> trace;
  StudiedTrace studied;
};
// Errors: StudyTrace()'s.
absl::StatusOr<OpenedFile> StudyFile(std::shared_ptr<const Trace> trace,
                                     const SettingsRequest& request);

}  // namespace memreplay

#endif  // MEMREPLAY_SIM_STUDY_STUDY_TRACE_H_
