// A card's attributes and properties as CUDA reports them.
#pragma once

#include <cstddef>

#include "hardware/cards.h"
#include "record/card/model/settings.h"

namespace memreplay::card {

// Reads the attribute with this number (cudaDeviceAttr, whose numbers are those of
// CUdevice_attribute). Returns false if there is none. An attribute that the table of cards does
// not cover is 0: not supported.
bool AttributeOf(const Settings& settings, int attribute, int* value);

// Fills cudaDeviceProp as this CUDA version (12040 for 12.4) lays it out.
void FillProperties(const Settings& settings, int cuda, int card, void* properties);

// Writes the 16 bytes that distinguish a card from others.
void FillUuid(int card, void* uuid);

// A kernel's image states its registers but is not read; the summary states this number.
inline constexpr int kAssumedRegisters = 32;

// Returns at least 1. Notes the assumption about registers.
int BlocksPerMultiprocessor(const Card& card, int threads, size_t shared);

}  // namespace memreplay::card
