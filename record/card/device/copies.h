// Moves bytes: small copies are real, and which of their bytes are known moves with them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace memreplay::card {

// Copies in the direction that the addresses imply. Up to the limit of the settings a copy is real;
// above it, the card's bytes become unknown and the host's zero. This and the next two return false
// if there are bytes to write and an address is null.
bool Copy(void* to, const void* from, size_t size);
bool Fill(void* to, int byte, size_t size);
// Copies `height` rows of `width` bytes, one every `pitch` bytes.
bool Copy2D(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
            size_t height);

// Provides the bytes for this thread's next copy of exactly `size` bytes from the card to the host.
void AnswerNext(const void* bytes, size_t size);
void ForgetAnswers();

// For values that are computed elsewhere. ReadBytes() returns whether all bytes were known; unknown
// bytes read as zero. Whole pages of zeros take no memory.
void WriteBytes(uint64_t address, const void* bytes, size_t size);
void FillWithZeros(uint64_t address, size_t size);
bool ReadBytes(uint64_t address, void* bytes, size_t size);

}  // namespace memreplay::card
