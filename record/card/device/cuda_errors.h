// Error codes that the simulated GPU returns. The CUDA runtime and driver use the same ones.
#pragma once

namespace memreplay::card {

enum CudaError : int {
  kSuccess = 0,
  kInvalidValue = 1,
  kMemoryAllocation = 2,
  kInvalidConfiguration = 9,
  kNoDevice = 100,
  kInvalidDevice = 101,
  kNoKernelImage = 209,
  kInvalidHandle = 400,
  kSymbolNotFound = 500,
  kNotReady = 600,
  kPeerAccessAlreadyEnabled = 704,
  kNotSupported = 801,
  kCaptureUnsupported = 900,
  kCaptureInvalidated = 901,
};

// Keeps an error for cudaGetLastError, as the runtime does, and returns it.
int Failed(int error);
// Returns this thread's last error.
int& LastError();

}  // namespace memreplay::card
