// Who holds memory, in words.
#pragma once

#include <cstdint>
#include <string>

#include "proto/explanation.pb.h"

namespace memreplay {

// Returns what grows from step to step and who holds it, what was held when memory ran out, what a
// step should have freed, and what is on and does nothing: a line each, with what to do. "" if
// there is none of it. `spare` is how many bytes more of the GPU there are: 0 if memory ran out,
// negative if it is unknown. Pure, O(size of the message).
std::string HoldingText(const proto::Holding& holding, int64_t spare);

}  // namespace memreplay
