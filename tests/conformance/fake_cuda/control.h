// What a test program can tell the fake CUDA device. Exported by the fake libcuda.so.1; plain C, so
// that anything can look the functions up by name.
#pragma once

#include <cstddef>
#include <cstdint>

extern "C" {
// A fresh device of `total` bytes. To be called before the first use; everything made before is
// forgotten.
void fake_cuda_reset(std::uint64_t total);
// Whether recorded stream work stays pending until fake_cuda_complete (1) or is complete at once
// (0, the default).
void fake_cuda_explicit(int on);
// Whether it gives more memory than it has (1): the device never runs out. fake_cuda_reset ends it.
void fake_cuda_endless(int on);
// Everything recorded on this stream so far is complete.
void fake_cuda_complete(std::uint64_t stream);
// The next n driver allocations (cudaMalloc or page creation) fail.
void fake_cuda_fail_next(std::uint64_t n);
// Memory taken (or given back, negative) by someone else on the device.
void fake_cuda_external(std::int64_t delta);
// Bytes free on the device and its size.
void fake_cuda_info(std::uint64_t* free_bytes, std::uint64_t* total);
// Starts (1) or ends (0) an imaginary stream capture: while it lasts every stream reports an active
// capture.
void fake_cuda_capture(int on);
}
