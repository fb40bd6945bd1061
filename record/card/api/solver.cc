// cuSOLVER: workspaces are assumed. Old functions count them in elements, in an int; new ones in
// bytes, for the card and the host.
#include <cstddef>
#include <cstdint>

#include "record/card/api/handles.h"
#include "record/card/device/device.h"
#include "record/card/device/entry.h"

namespace memreplay::card {
namespace {

void AssumeNoWorkspace() { Assume("the cuSOLVER workspace is assumed to be 0 bytes"); }
int NoElements(int* count) {
  AssumeNoWorkspace();
  *count = 0;
  return 0;
}
int NoBytes(size_t* on_card, size_t* on_host) {
  AssumeNoWorkspace();
  *on_card = *on_host = 0;
  return 0;
}

COUNTED_OBJECT(kSolverObject, cusolverDnCreate, cusolverDnDestroy)
OBJECT(cusolverDnCreateParams, cusolverDnDestroyParams)
OBJECT(cusolverDnCreateGesvdjInfo, cusolverDnDestroyGesvdjInfo)
OBJECT(cusolverDnCreateSyevjInfo, cusolverDnDestroySyevjInfo)

int Factor(void*, int, int, void*, int, int* count) { return NoElements(count); }
ALSO_OF_FOUR_TYPES(cusolverDn, getrf_bufferSize, Factor);
ALSO_OF_FOUR_TYPES(cusolverDn, geqrf_bufferSize, Factor);
ALSO_OF_FOUR_TYPES(cusolverDn, potrf_bufferSize, Factor);
int FactorSymmetric(void*, int, void*, int, int* count) { return NoElements(count); }
ALSO_OF_FOUR_TYPES(cusolverDn, sytrf_bufferSize, FactorSymmetric);
int SingularValues(void*, int, int, int* count) { return NoElements(count); }
ALSO_OF_FOUR_TYPES(cusolverDn, gesvd_bufferSize, SingularValues);
int SingularValuesJacobi(void*, int, int, int, int, void*, int, void*, void*, int, void*, int,
                         int* count) {
  return NoElements(count);
}
ALSO_OF_FOUR_TYPES(cusolverDn, gesvdj_bufferSize, SingularValuesJacobi);
int SingularValuesBatched(void*, int, int, int, void*, int, void*, void*, int, void*, int,
                          int* count) {
  return NoElements(count);
}
ALSO_OF_FOUR_TYPES(cusolverDn, gesvdjBatched_bufferSize, SingularValuesBatched);
int SingularValuesStrided(void*, int, int, int, int, void*, int, int64_t, void*, int64_t, void*,
                          int, int64_t, void*, int, int64_t, int* count) {
  return NoElements(count);
}
ALSO_OF_FOUR_TYPES(cusolverDn, gesvdaStridedBatched_bufferSize, SingularValuesStrided);
int Eigenvalues(void*, int, int, int, void*, int, void*, int* count) { return NoElements(count); }
ALSO(cusolverDnSsyevd_bufferSize, Eigenvalues);
ALSO(cusolverDnDsyevd_bufferSize, Eigenvalues);
ALSO(cusolverDnCheevd_bufferSize, Eigenvalues);
ALSO(cusolverDnZheevd_bufferSize, Eigenvalues);
ALSO(cusolverDnSsyevj_bufferSize, Eigenvalues);
ALSO(cusolverDnDsyevj_bufferSize, Eigenvalues);
ALSO(cusolverDnCheevj_bufferSize, Eigenvalues);
ALSO(cusolverDnZheevj_bufferSize, Eigenvalues);
ALSO(cusolverDnSsyevjBatched_bufferSize, Eigenvalues);
ALSO(cusolverDnDsyevjBatched_bufferSize, Eigenvalues);
ALSO(cusolverDnCheevjBatched_bufferSize, Eigenvalues);
ALSO(cusolverDnZheevjBatched_bufferSize, Eigenvalues);
int Orthogonal(void*, int, int, int, void*, int, void*, int* count) { return NoElements(count); }
ALSO(cusolverDnSorgqr_bufferSize, Orthogonal);
ALSO(cusolverDnDorgqr_bufferSize, Orthogonal);
ALSO(cusolverDnCungqr_bufferSize, Orthogonal);
ALSO(cusolverDnZungqr_bufferSize, Orthogonal);
int OrthogonalProduct(void*, int, int, int, int, int, void*, int, void*, void*, int, int* count) {
  return NoElements(count);
}
ALSO(cusolverDnSormqr_bufferSize, OrthogonalProduct);
ALSO(cusolverDnDormqr_bufferSize, OrthogonalProduct);
ALSO(cusolverDnCunmqr_bufferSize, OrthogonalProduct);
ALSO(cusolverDnZunmqr_bufferSize, OrthogonalProduct);

ENTRY(int, cusolverDnXpotrf_bufferSize, void*, void*, int, int64_t, int, void*, int64_t, int,
      size_t* on_card, size_t* on_host) {
  return NoBytes(on_card, on_host);
}
ENTRY(int, cusolverDnXgeqrf_bufferSize, void*, void*, int64_t, int64_t, int, void*, int64_t, int,
      void*, int, size_t* on_card, size_t* on_host) {
  return NoBytes(on_card, on_host);
}
ENTRY(int, cusolverDnXsyevd_bufferSize, void*, void*, int, int, int64_t, int, void*, int64_t, int,
      void*, int, size_t* on_card, size_t* on_host) {
  return NoBytes(on_card, on_host);
}
ALSO(cusolverDnXsyevBatched_bufferSize, cusolverDnXsyevd_bufferSize);
ENTRY(int, cusolverDnXsytrs_bufferSize, void*, int, int64_t, int64_t, int, void*, int64_t, void*,
      int, void*, int64_t, size_t* on_card, size_t* on_host) {
  return NoBytes(on_card, on_host);
}
ENTRY(int, cusolverDnXgeev_bufferSize, void*, void*, int, int, int64_t, int, void*, int64_t, int,
      void*, int, void*, int64_t, int, void*, int64_t, int, size_t* on_card, size_t* on_host) {
  return NoBytes(on_card, on_host);
}

}  // namespace
}  // namespace memreplay::card
