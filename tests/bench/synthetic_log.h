// A long schedule of allocations and frees that serves to measure speed.
#pragma once

#include "trace/value/trace.h"

namespace memreplay {

// Training steps of a 32-layer transformer whose sequence length varies from step to step. Weights
// and optimizer state stay, activations are kept from forward to backward, and there are
// short-lived temporaries. A step has about 2000 operations.
Trace SyntheticLog(int steps);

}  // namespace memreplay
