// What a launcher may ask of the card and tell it. Plain C, so that anything can look the functions
// up by name (ctypes). All may be called from any thread.
#pragma once

#include <cstddef>
#include <cstdint>

#define MEMREPLAY_CARD_EXPORT __attribute__((visibility("default")))

extern "C" {

// Writes the stub libraries for a torch installation. `folders` are separated by ':'; the first is
// ".../site-packages/torch", others are where packages are installed, whose code may be for CUDA
// too. `out` then holds one library for each soname that they want, a link to this core, and
// `libraries`, their paths in the order to load (RTLD_GLOBAL, before `import torch`). 0, or -1 and
// an error.
MEMREPLAY_CARD_EXPORT int memreplay_card_prepare(const char* folders, const char* out);
// What was wrong with the last prepare, else with the environment; "" if nothing. Texts are valid
// until this thread asks for the next one.
MEMREPLAY_CARD_EXPORT const char* memreplay_card_error();
// Counters, assumptions and unknown calls of this process, JSON.
MEMREPLAY_CARD_EXPORT const char* memreplay_card_summary();

// How many GPUs the process would see if CUDA were initialised now. Initialises nothing.
MEMREPLAY_CARD_EXPORT int memreplay_card_count();

// Bytes of the card. Known is what a small copy, a fill or memreplay_card_write wrote; a block that
// PyTorch's allocator hands out is unknown, whoever had it before.
MEMREPLAY_CARD_EXPORT void memreplay_card_write(std::uint64_t address, const void* bytes,
                                                std::size_t size);
// 1 if all were known; the others are zero.
MEMREPLAY_CARD_EXPORT int memreplay_card_read(std::uint64_t address, void* bytes, std::size_t size);
MEMREPLAY_CARD_EXPORT int memreplay_card_known(std::uint64_t address, std::size_t size);
// This thread's next copy of exactly `size` bytes from the card to the host gets these; several
// answers are given in order.
MEMREPLAY_CARD_EXPORT void memreplay_card_answer(const void* bytes, std::size_t size);
MEMREPLAY_CARD_EXPORT void memreplay_card_answer_clear();

// From here on the host's addresses depend on what the program does, not on its environment,
// arguments and paths (heap.h).
MEMREPLAY_CARD_EXPORT void memreplay_card_begin_heap_anew();

// Hides a mode of torch.overrides from PyTorch's own functions; `overrides` is a TorchOverrides
// (torch_overrides.h). The caller holds Python's lock. 1, or 0 where this PyTorch is of another
// kind.
MEMREPLAY_CARD_EXPORT int memreplay_card_hide_mode(const void* overrides);

// How many ranks the next part of an NCCL communicator has that this thread splits off, and which
// one this is: NCCL learns it from the other ranks, which nobody runs.
MEMREPLAY_CARD_EXPORT void memreplay_card_next_communicator(int ranks, int rank);

// For tests. A fresh card of `total` bytes, as memreplay's simulated device is: nothing else takes
// memory, addresses go upwards from 0x7f0000000000 and have no bytes, work is done at once, the
// n-th stream of one priority has the handle n.
MEMREPLAY_CARD_EXPORT void memreplay_card_simulate(std::uint64_t total);
// Whether it gives more memory than it has (1).
MEMREPLAY_CARD_EXPORT void memreplay_card_endless(int on);
// Whether work stays pending until memreplay_card_complete or until the program waits (1).
MEMREPLAY_CARD_EXPORT void memreplay_card_explicit(int on);
// Everything recorded on this stream so far is done.
MEMREPLAY_CARD_EXPORT void memreplay_card_complete(std::uint64_t stream);
// The next n driver allocations (cudaMalloc or page creation) fail.
MEMREPLAY_CARD_EXPORT void memreplay_card_fail_next(std::uint64_t calls);
// Memory taken (or given back, negative) by someone else.
MEMREPLAY_CARD_EXPORT void memreplay_card_external(std::int64_t bytes);
// While it lasts (1) every stream says that it is captured.
MEMREPLAY_CARD_EXPORT void memreplay_card_capture(int on);

}  // extern "C"
