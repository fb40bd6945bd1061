// What a launcher can query and change of the simulated GPU. Plain C, so that the functions can be
// looked up by name (ctypes). Every function may be called from any thread.
#pragma once

#include <cstddef>
#include <cstdint>

#define MEMREPLAY_CARD_EXPORT __attribute__((visibility("default")))

extern "C" {

// Writes the stub libraries for a torch installation. `folders` are separated by ':'; the first is
// ".../site-packages/torch", others are where packages are installed, whose code may use CUDA too.
// Afterwards `out` has one library for each soname that they need, a link to this core, and
// `libraries`, their paths in the order to load them (RTLD_GLOBAL, before `import torch`). Returns
// 0, or -1 and sets an error.
MEMREPLAY_CARD_EXPORT int memreplay_card_prepare(const char* folders, const char* out);
// Returns the error of the last prepare, else of the environment; "" if there is none. A text is
// valid until this thread requests the next one.
MEMREPLAY_CARD_EXPORT const char* memreplay_card_error();
// Returns counters, assumptions and unknown calls of this process as JSON.
MEMREPLAY_CARD_EXPORT const char* memreplay_card_summary();

// Writes bytes of the card. A byte is known if a small copy, a fill or memreplay_card_write wrote
// it; a block that PyTorch's allocator hands out is unknown, regardless of its former owner.
MEMREPLAY_CARD_EXPORT void memreplay_card_write(uint64_t address, const void* bytes, size_t size);
// Fills bytes of the card with zeros, which are known and take no memory of the host.
MEMREPLAY_CARD_EXPORT void memreplay_card_fill_with_zeros(uint64_t address, size_t size);
// Makes bytes unknown.
MEMREPLAY_CARD_EXPORT void memreplay_card_forget(uint64_t address, size_t size);
// Reads bytes and returns 1 if all were known; unknown bytes read as zero.
MEMREPLAY_CARD_EXPORT int memreplay_card_read(uint64_t address, void* bytes, size_t size);
// Returns 1 if all bytes of the range are known.
MEMREPLAY_CARD_EXPORT int memreplay_card_known(uint64_t address, size_t size);
// Marks an address until PyTorch's allocator hands its block out again.
MEMREPLAY_CARD_EXPORT void memreplay_card_mark(uint64_t address);
// Returns 1 if it is marked.
MEMREPLAY_CARD_EXPORT int memreplay_card_marked(uint64_t address);
// Returns where the number of allocations and frees of PyTorch's allocator on a card is counted,
// for as long as the process runs; nullptr if there is no such card.
MEMREPLAY_CARD_EXPORT const uint64_t* memreplay_card_allocator_calls(int card);
// Provides the bytes for this thread's next copy of exactly `size` bytes from the card to the host;
// several answers are used in order.
MEMREPLAY_CARD_EXPORT void memreplay_card_answer(const void* bytes, size_t size);
MEMREPLAY_CARD_EXPORT void memreplay_card_answer_clear();

// Makes the host's addresses from here on depend on what the script does, not on its environment,
// arguments and paths (tensor_objects.h).
MEMREPLAY_CARD_EXPORT void memreplay_card_begin_heap_anew();

// Follows PyTorch's allocator of pinned memory (pinned_hook.h), whose settings are in `conf`, a
// text of PYTORCH_CUDA_ALLOC_CONF: `line` returns the number of the line of the script that
// requests memory. Returns 1, or 0 if this PyTorch has no allocator that can be followed.
MEMREPLAY_CARD_EXPORT int memreplay_card_follow_pinned(int (*line)(), const char* conf);
// Calls `line` no more, because Python ends.
MEMREPLAY_CARD_EXPORT void memreplay_card_forget_lines();

// Hides a mode of torch.overrides from PyTorch's own functions; `overrides` is a TorchOverrides
// (torch_overrides.h). The caller must hold Python's lock. Returns 1, or 0 if this PyTorch's
// methods are of another kind.
MEMREPLAY_CARD_EXPORT int memreplay_card_hide_mode(const void* overrides);

// Sets how many ranks the next part of an NCCL communicator has that this thread splits off, and
// which one this is. NCCL learns it from the other ranks, which do not run.
MEMREPLAY_CARD_EXPORT void memreplay_card_next_communicator(int ranks, int rank);

// For tests. Makes a fresh card of `total` bytes that acts as memreplay's simulated device does:
// nothing else takes memory, addresses go upwards from 0x7f0000000000 and have no bytes, work is
// done at once, and the n-th stream of one priority has the handle n.
MEMREPLAY_CARD_EXPORT void memreplay_card_simulate(uint64_t total);
// Sets whether it hands out more memory than it has (1).
MEMREPLAY_CARD_EXPORT void memreplay_card_endless(int on);
// Sets whether work stays pending until memreplay_card_complete or until the script waits (1).
MEMREPLAY_CARD_EXPORT void memreplay_card_explicit(int on);
// Completes everything recorded on this stream so far.
MEMREPLAY_CARD_EXPORT void memreplay_card_complete(uint64_t stream);
// Makes the next `calls` driver allocations (cudaMalloc or page creation) fail.
MEMREPLAY_CARD_EXPORT void memreplay_card_fail_next(uint64_t calls);
// Takes memory for another process, or releases it if `bytes` is negative.
MEMREPLAY_CARD_EXPORT void memreplay_card_external(int64_t bytes);
// Sets whether every stream reports that it is being captured (1).
MEMREPLAY_CARD_EXPORT void memreplay_card_capture(int on);

}  // extern "C"
