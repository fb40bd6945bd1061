// Moving bytes: small copies are real, and what is known of their bytes moves with them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace memreplay::card {

// A copy of either direction, known by the addresses. Up to the limit of the settings it is real;
// above, what arrives on the card is unknown and what arrives on the host is zeros.
void Copy(void* to, const void* from, std::size_t size);
void Fill(void* to, int byte, std::size_t size);
// A row of `width` bytes every `pitch` bytes.
void Copy2D(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,
            std::size_t width, std::size_t height);

// The calling thread's next copy of exactly `size` bytes from the card to the host gets these
// bytes.
void AnswerNext(const void* bytes, std::size_t size);
void ForgetAnswers();

// For who computes values elsewhere. read() says whether all bytes were known; the others are zero.
void WriteBytes(std::uint64_t address, const void* bytes, std::size_t size);
bool ReadBytes(std::uint64_t address, void* bytes, std::size_t size);

}  // namespace memreplay::card
