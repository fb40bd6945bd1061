// Long lists of allocations and frees, to measure speed with.
#ifndef MEMREPLAY_TESTS_SIM_OP_LOG_H_
#define MEMREPLAY_TESTS_SIM_OP_LOG_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "trace/event.h"

namespace memreplay {

// Reads a text file with one operation a line: "id size" allocates, "id -size"
// frees. Ids are dense already (0, 1, 2 ... in order of allocation).
absl::StatusOr<std::vector<Event>> ReadOpLog(const std::string& path);

// Training steps of a 32-layer transformer whose sequence length varies from
// step to step: weights and optimizer state that stay, activations kept from
// forward to backward, short-lived temporaries. About 2000 operations a step.
std::vector<Event> SyntheticOpLog(int steps);

}  // namespace memreplay

#endif  // MEMREPLAY_TESTS_SIM_OP_LOG_H_
