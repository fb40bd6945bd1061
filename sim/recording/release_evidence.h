// Which PyTorch release made a recording, where its layout leaves several: the
// one under whose rules it replays; and which pools it does not name.
#ifndef MEMREPLAY_SIM_RECORDING_RELEASE_EVIDENCE_H_
#define MEMREPLAY_SIM_RECORDING_RELEASE_EVIDENCE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "sim/recording/replay_settings.h"
#include "trace/value/trace.h"

namespace memreplay {

// As ResolveSettings(). Where the release is inferred and the layout fits several,
// those are tried on the recorded events, the newest first: the first under which every
// event and final block is as recorded, else the one that comes furthest. One
// replay where the newest is right, at most one for each that fits. Where none is right, private
// pools that are gone may be why: TellGonePools() writes what it finds into the trace, which
// nobody else may be reading yet.
absl::StatusOr<ReplaySettings> ResolveSettingsByReplay(const std::shared_ptr<Trace>& trace,
                                                       const SettingsRequest& request);

}  // namespace memreplay

#endif  // MEMREPLAY_SIM_RECORDING_RELEASE_EVIDENCE_H_
