// A long program of allocations and frees, to measure speed with.
#ifndef MEMREPLAY_TESTS_BENCH_SYNTHETIC_LOG_H_
#define MEMREPLAY_TESTS_BENCH_SYNTHETIC_LOG_H_

#include "trace/value/trace.h"

namespace memreplay {

// Training steps of a 32-layer transformer whose sequence length varies from
// step to step: weights and optimizer state that stay, activations kept from
// forward to backward, short-lived temporaries. About 2000 operations a step.
Trace SyntheticLog(int steps);

}  // namespace memreplay

#endif  // MEMREPLAY_TESTS_BENCH_SYNTHETIC_LOG_H_
