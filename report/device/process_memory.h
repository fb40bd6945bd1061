// Estimates what nvidia-smi shows for a process that ran on the simulated GPU.
#ifndef MEMREPLAY_REPORT_DEVICE_PROCESS_MEMORY_H_
#define MEMREPLAY_REPORT_DEVICE_PROCESS_MEMORY_H_

#include "proto/record.pb.h"

namespace memreplay {

// Sets nvidia_smi of each card on which `process` has memory: what was recorded, and for what only
// NVIDIA's libraries know the figures of public reports (hardware/outside_figures.h). Leaves it out
// on a real GPU and where the GPU's memory is the host's.
void AddProcessMemory(proto::RecordedProcess* process);

}  // namespace memreplay

#endif  // MEMREPLAY_REPORT_DEVICE_PROCESS_MEMORY_H_
