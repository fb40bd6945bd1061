// Computes how many blocks of a kernel a multiprocessor holds at once.
#pragma once

#include <cstddef>

#include "hardware/cards.h"

namespace memreplay::card {

// A kernel's image states its registers but is not read; the summary states this number.
inline constexpr int kAssumedRegisters = 32;

// Returns at least 1. Notes the assumption about registers.
int BlocksPerMultiprocessor(const Card& card, int threads, size_t shared);

}  // namespace memreplay::card
