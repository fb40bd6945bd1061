// How an inference server divides a GPU's memory: weights, the cache of keys and values, CUDA
// graphs.
#pragma once

#include <cstdint>
#include <optional>

#include "trace/schedule/schedule.h"
#include "trace/value/units.h"

namespace memreplay {

// What one process of a server holds of one device, in bytes.
struct ServerBudget {
  Bytes weights;        // live when the cache is made, without it: weights and the server's buffers
  Bytes profile;        // the most that was live before, in addition to `weights`
  Bytes cache;          // the most that the cache of keys and values takes
  int64_t tensors = 0;  // that it consists of
  Bytes graphs;         // the most that private pools reserve from then on
};

// Returns the budget of a recording of a server: one that makes the cache of keys and values as a
// whole, before it has requests, and not within a module's forward(). The cache is known by the
// functions that make it (stack_roles.h). Returns nullopt for other recordings and for schedules
// that were written. O(events + frames).
std::optional<ServerBudget> FindServerBudget(const Schedule& schedule);

}  // namespace memreplay
