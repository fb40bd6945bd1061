// Who holds memory, and a diagnosis, in words.
#pragma once

#include <cstdint>
#include <string>

#include "proto/explanation.pb.h"

namespace memreplay {

// Returns what grows from step to step; who holds it, what was held when memory ran out and what a
// step should have freed; and the first thing to do about one of these or about what is on and does
// nothing. `spare` is how many bytes more of the GPU there are: 0 if memory ran out, negative if it
// is unknown. Pure, O(size of the message).
proto::Diagnosis HoldingWords(const proto::Holding& holding, int64_t spare);

// Returns what happened, why and what to do as one text.
std::string DiagnosisText(const proto::Diagnosis& diagnosis);

}  // namespace memreplay
