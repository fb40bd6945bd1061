// How many blocks of a kernel a multiprocessor holds at once.
#pragma once

#include <cstddef>

#include "hardware/cards.h"

namespace memreplay::card {

// What a kernel's image says is not read; the number is stated in the summary.
inline constexpr int kAssumedRegisters = 32;

// At least 1. Notes the assumption about registers.
int BlocksPerMultiprocessor(const Card& card, int threads, std::size_t shared);

}  // namespace memreplay::card
