// cuSOLVER: workspaces are assumed. Old functions count them in elements, in an int; new ones in
// bytes, for the card and the host.
#include <cstddef>
#include <cstdint>

#include "record/card/api/handles.h"
#include "record/card/device/device.h"
#include "record/card/device/entry.h"

namespace memreplay::card {
namespace {

int NoElements(int* count) {
  Assume("the cuSOLVER workspace is assumed to be 0 bytes");
  *count = 0;
  return 0;
}
void NoBytes(size_t* on_card, size_t* on_host) {
  int none = 0;
  *on_card = *on_host = static_cast<size_t>(NoElements(&none));
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
ALSO_OF_TYPES(cusolverDn, syevd_bufferSize, heevd_bufferSize, Eigenvalues);
ALSO_OF_TYPES(cusolverDn, syevj_bufferSize, heevj_bufferSize, Eigenvalues);
ALSO_OF_TYPES(cusolverDn, syevjBatched_bufferSize, heevjBatched_bufferSize, Eigenvalues);
int Orthogonal(void*, int, int, int, void*, int, void*, int* count) { return NoElements(count); }
ALSO_OF_TYPES(cusolverDn, orgqr_bufferSize, ungqr_bufferSize, Orthogonal);
int OrthogonalProduct(void*, int, int, int, int, int, void*, int, void*, void*, int, int* count) {
  return NoElements(count);
}
ALSO_OF_TYPES(cusolverDn, ormqr_bufferSize, unmqr_bufferSize, OrthogonalProduct);

DOES(cusolverDnXpotrf_bufferSize,
     (void*, void*, int, int64_t, int, void*, int64_t, int, size_t* on_card, size_t* on_host),
     NoBytes(on_card, on_host))
DOES(cusolverDnXgeqrf_bufferSize,
     (void*, void*, int64_t, int64_t, int, void*, int64_t, int, void*, int, size_t* on_card,
      size_t* on_host),
     NoBytes(on_card, on_host))
DOES(cusolverDnXsyevd_bufferSize,
     (void*, void*, int, int, int64_t, int, void*, int64_t, int, void*, int, size_t* on_card,
      size_t* on_host),
     NoBytes(on_card, on_host))
ALSO(cusolverDnXsyevBatched_bufferSize, cusolverDnXsyevd_bufferSize);
DOES(cusolverDnXsytrs_bufferSize,
     (void*, int, int64_t, int64_t, int, void*, int64_t, void*, int, void*, int64_t,
      size_t* on_card, size_t* on_host),
     NoBytes(on_card, on_host))
DOES(cusolverDnXgeev_bufferSize,
     (void*, void*, int, int, int64_t, int, void*, int64_t, int, void*, int, void*, int64_t, int,
      void*, int64_t, int, size_t* on_card, size_t* on_host),
     NoBytes(on_card, on_host))

}  // namespace
}  // namespace memreplay::card
