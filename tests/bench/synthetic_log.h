// A long schedule of allocations and frees that serves to measure speed.
#ifndef MEMREPLAY_TESTS_BENCH_SYNTHETIC_LOG_H_
#define MEMREPLAY_TESTS_BENCH_SYNTHETIC_LOG_H_

#include "trace/value/trace.h"

namespace memreplay {

// Training steps of a 32-layer transformer whose sequence length varies from step to step. Weights
// and optimizer state stay, activations are kept from forward to backward, and there are
// short-lived temporaries. A step has about 2000 operations.
Trace SyntheticLog(int steps);

}  // namespace memreplay

#endif  // MEMREPLAY_TESTS_BENCH_SYNTHETIC_LOG_H_
