// What two schedules have to agree on: sizes, order, and what is freed when.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "trace/value/trace.h"

namespace memreplay::synth {

// Returns one line for each allocation ("A 512"), phase ("P it0.fwd0") and instant of frees ("F 3
// 17": which allocations, counted from 0). Frees with nothing between them are one instant, in
// which order means nothing. Retagging is left out.
std::vector<std::string> Instants(const Trace& program);
// Returns the same without workspaces and what holds a number or two (16 bytes or less), as
// walks/record.py sees a run.
std::vector<std::string> VisibleInstants(const Trace& program);

// Returns FNV-1a over the lines.
uint64_t Digest(const std::vector<std::string>& lines);

// Returns the peak of the allocated bytes in each phase, in blocks of 512 bytes, in order.
std::vector<std::pair<std::string, uint64_t>> PhasePeaks(const Trace& program);

}  // namespace memreplay::synth
