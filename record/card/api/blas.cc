// cuBLAS and cuBLASLt. Their kernels take only the workspace that torch passes to them. Functions
// that are not here compute or set something.
#include <cstdint>
#include <cstring>

#include "record/card/api/handles.h"
#include "record/card/device/device.h"
#include "record/card/device/entry.h"

namespace memreplay::card {
namespace {

struct Handle {
  static constexpr int kErrorIfNull = 1;  // not initialized

  int pointer_mode = 0;
  int math_mode = 0;
  void* stream = nullptr;
};

ENTRY(int, cublasCreate_v2, Handle** out) {
  *out = new Handle;
  TheDevice().Made(kBlasObject, __builtin_return_address(0), *out);
  return 0;
}
ENTRY(int, cublasDestroy_v2, Handle* handle) {
  TheDevice().Destroyed(kBlasObject, handle);
  delete handle;
  return 0;
}
DOES(cublasSetPointerMode_v2, (Handle * handle, int mode), handle->pointer_mode = mode)
DOES(cublasGetPointerMode_v2, (const Handle* handle, int* mode), *mode = handle->pointer_mode)
DOES(cublasSetMathMode, (Handle * handle, int mode), handle->math_mode = mode)
DOES(cublasGetMathMode, (const Handle* handle, int* mode), *mode = handle->math_mode)
DOES(cublasSetStream_v2, (Handle * handle, void* stream), handle->stream = stream)
DOES(cublasGetStream_v2, (const Handle* handle, void** stream), *stream = handle->stream)
// Version 12.4 is called 120400.
DOES(cublasGetVersion_v2, (const Handle*, int* version), *version = Versions().cuda * 10)
ENTRY(const char*, cublasGetStatusString, int status) {
  return status == 15 ? "CUBLAS_STATUS_NOT_SUPPORTED" : "CUBLAS_STATUS_SUCCESS";
}
ENTRY(const char*, cublasGetStatusName, int status) { return cublasGetStatusString(status); }

// Functions on batches report to the host whether their arguments were right.
int SolveBatch(Handle*, int, int, int, const void*, int, const void*, void*, int, int* info, int) {
  *info = 0;
  return 0;
}
ALSO_OF_FOUR_TYPES(cublas, getrsBatched, SolveBatch);
int FactorBatch(Handle*, int, int, void*, int, void*, int* info, int) {
  *info = 0;
  return 0;
}
ALSO_OF_FOUR_TYPES(cublas, geqrfBatched, FactorBatch);
int LeastSquaresBatch(Handle*, int, int, int, int, void*, int, void*, int, int* info, void*, int) {
  *info = 0;
  return 0;
}
ALSO_OF_FOUR_TYPES(cublas, gelsBatched, LeastSquaresBatch);

COUNTED_OBJECT(kBlasLtObject, cublasLtCreate, cublasLtDestroy)
OBJECT(cublasLtMatmulDescCreate, cublasLtMatmulDescDestroy)
OBJECT(cublasLtMatrixLayoutCreate, cublasLtMatrixLayoutDestroy)
OBJECT(cublasLtMatmulPreferenceCreate, cublasLtMatmulPreferenceDestroy)
ENTRY(size_t, cublasLtGetVersion, void) { return static_cast<size_t>(Versions().cuda) * 10; }
ENTRY(size_t, cublasLtGetCudartVersion, void) { return static_cast<size_t>(Versions().cuda); }

struct HeuristicResult {
  uint64_t algorithm[8];
  size_t workspace;
  int state;
  float waves;
  int reserved[4];
};
ENTRY(int, cublasLtMatmulAlgoGetHeuristic, void*, void*, void*, void*, void*, void*, void*,
      int wanted, HeuristicResult* results, int* found) {
  // torch allocates the whole workspace that it allows before this call, whatever the answer is.
  *found = wanted > 0 ? 1 : 0;
  if (wanted > 0) {
    std::memset(results, 0, sizeof *results);
    results->waves = 1;
  }
  return 0;
}
DOES(cublasLtMatmulAlgoInit, (void*, int, int, int, int, int, int, int, char* algorithm),
     std::memset(algorithm, 0, sizeof HeuristicResult::algorithm))
ENTRY(int, cublasLtMatmulAlgoCheck, void*, void*, void*, void*, void*, void*, void*,
      HeuristicResult* result) {
  std::memset(result, 0, sizeof *result);
  result->waves = 1;
  return 0;
}
ENTRY(int, cublasLtMatmulAlgoConfigGetAttribute, const void*, int, void* buffer, size_t size,
      MayBeNull<size_t> written) {
  if (buffer != nullptr) std::memset(buffer, 0, size);
  if (written != nullptr) *written = size;
  return 0;
}

}  // namespace
}  // namespace memreplay::card
