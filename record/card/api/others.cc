// The smaller libraries: cuFFT, cuSPARSE, cuSOLVER, NVRTC.
#include <cstddef>

#include "record/card/api/handles.h"
#include "record/card/device.h"
#include "record/card/entry.h"

namespace memreplay::card {
namespace {

OBJECT(cusparseCreate, cusparseDestroy)
OBJECT(cusparseCreateMatDescr, cusparseDestroyMatDescr)
OBJECT(cusolverDnCreate, cusolverDnDestroy)
OBJECT(cusolverDnCreateParams, cusolverDnDestroyParams)

ENTRY(int, cufftCreate, int* plan) {
  *plan = 1;
  return 0;
}
ENTRY(int, cufftDestroy, int) { return 0; }
ENTRY(int, cufftXtMakePlanMany, int, int, long long*, long long*, long long, long long, int,
      long long*, long long, long long, int, long long, std::size_t* workspace, int) {
  Assume("cuFFT's workspace assumed 0 bytes");
  *workspace = 0;
  return 0;
}

ENTRY(int, nvrtcVersion, int* major, int* minor) {
  *major = versions().cuda / 1000;
  *minor = versions().cuda % 1000 / 10;
  return 0;
}

}  // namespace
}  // namespace memreplay::card
