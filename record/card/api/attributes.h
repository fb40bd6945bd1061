// A card's attributes and properties as CUDA tells them.
#pragma once

#include "record/card/settings.h"

namespace memreplay::card {

// The attribute with this number (cudaDeviceAttr, the same numbers as CUdevice_attribute). False if
// there is none. An attribute that the table of cards says nothing about is 0: the card cannot.
bool AttributeOf(const Settings& settings, int attribute, int* value);

// Fills cudaDeviceProp as this CUDA version (12040) lays it out.
void FillProperties(const Settings& settings, int cuda, int card, void* properties);

// The 16 bytes by which a card is told from others.
void FillUuid(int card, void* uuid);

}  // namespace memreplay::card
