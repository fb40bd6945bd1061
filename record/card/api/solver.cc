// cuSOLVER: workspaces are assumed. Old functions count them in elements, in an int; new ones in
// bytes, for the card and the host.
#include <cstddef>
#include <cstdint>

#include "record/card/api/handles.h"
#include "record/card/device/device.h"
#include "record/card/device/entry.h"

namespace memreplay::card {
namespace {

void assume() { Assume("the cuSOLVER workspace is assumed to be 0 bytes"); }
int no_elements(int* count) {
  assume();
  *count = 0;
  return 0;
}
int no_bytes(std::size_t* on_card, std::size_t* on_host) {
  assume();
  *on_card = *on_host = 0;
  return 0;
}

COUNTED_OBJECT(kSolverObject, cusolverDnCreate, cusolverDnDestroy)
OBJECT(cusolverDnCreateParams, cusolverDnDestroyParams)
OBJECT(cusolverDnCreateGesvdjInfo, cusolverDnDestroyGesvdjInfo)
OBJECT(cusolverDnCreateSyevjInfo, cusolverDnDestroySyevjInfo)

int factor(void*, int, int, void*, int, int* count) { return no_elements(count); }
ALSO_OF_FOUR_TYPES(cusolverDn, getrf_bufferSize, factor);
ALSO_OF_FOUR_TYPES(cusolverDn, geqrf_bufferSize, factor);
ALSO_OF_FOUR_TYPES(cusolverDn, potrf_bufferSize, factor);
int factor_symmetric(void*, int, void*, int, int* count) { return no_elements(count); }
ALSO_OF_FOUR_TYPES(cusolverDn, sytrf_bufferSize, factor_symmetric);
int singular_values(void*, int, int, int* count) { return no_elements(count); }
ALSO_OF_FOUR_TYPES(cusolverDn, gesvd_bufferSize, singular_values);
int singular_values_jacobi(void*, int, int, int, int, void*, int, void*, void*, int, void*, int,
                           int* count) {
  return no_elements(count);
}
ALSO_OF_FOUR_TYPES(cusolverDn, gesvdj_bufferSize, singular_values_jacobi);
int singular_values_batched(void*, int, int, int, void*, int, void*, void*, int, void*, int,
                            int* count) {
  return no_elements(count);
}
ALSO_OF_FOUR_TYPES(cusolverDn, gesvdjBatched_bufferSize, singular_values_batched);
int singular_values_strided(void*, int, int, int, int, void*, int, std::int64_t, void*,
                            std::int64_t, void*, int, std::int64_t, void*, int, std::int64_t,
                            int* count) {
  return no_elements(count);
}
ALSO_OF_FOUR_TYPES(cusolverDn, gesvdaStridedBatched_bufferSize, singular_values_strided);
int eigenvalues(void*, int, int, int, void*, int, void*, int* count) { return no_elements(count); }
ALSO(cusolverDnSsyevd_bufferSize, eigenvalues);
ALSO(cusolverDnDsyevd_bufferSize, eigenvalues);
ALSO(cusolverDnCheevd_bufferSize, eigenvalues);
ALSO(cusolverDnZheevd_bufferSize, eigenvalues);
ALSO(cusolverDnSsyevj_bufferSize, eigenvalues);
ALSO(cusolverDnDsyevj_bufferSize, eigenvalues);
ALSO(cusolverDnCheevj_bufferSize, eigenvalues);
ALSO(cusolverDnZheevj_bufferSize, eigenvalues);
ALSO(cusolverDnSsyevjBatched_bufferSize, eigenvalues);
ALSO(cusolverDnDsyevjBatched_bufferSize, eigenvalues);
ALSO(cusolverDnCheevjBatched_bufferSize, eigenvalues);
ALSO(cusolverDnZheevjBatched_bufferSize, eigenvalues);
int orthogonal(void*, int, int, int, void*, int, void*, int* count) { return no_elements(count); }
ALSO(cusolverDnSorgqr_bufferSize, orthogonal);
ALSO(cusolverDnDorgqr_bufferSize, orthogonal);
ALSO(cusolverDnCungqr_bufferSize, orthogonal);
ALSO(cusolverDnZungqr_bufferSize, orthogonal);
int orthogonal_product(void*, int, int, int, int, int, void*, int, void*, void*, int, int* count) {
  return no_elements(count);
}
ALSO(cusolverDnSormqr_bufferSize, orthogonal_product);
ALSO(cusolverDnDormqr_bufferSize, orthogonal_product);
ALSO(cusolverDnCunmqr_bufferSize, orthogonal_product);
ALSO(cusolverDnZunmqr_bufferSize, orthogonal_product);

ENTRY(int, cusolverDnXpotrf_bufferSize, void*, void*, int, std::int64_t, int, void*, std::int64_t,
      int, std::size_t* on_card, std::size_t* on_host) {
  return no_bytes(on_card, on_host);
}
ENTRY(int, cusolverDnXgeqrf_bufferSize, void*, void*, std::int64_t, std::int64_t, int, void*,
      std::int64_t, int, void*, int, std::size_t* on_card, std::size_t* on_host) {
  return no_bytes(on_card, on_host);
}
ENTRY(int, cusolverDnXsyevd_bufferSize, void*, void*, int, int, std::int64_t, int, void*,
      std::int64_t, int, void*, int, std::size_t* on_card, std::size_t* on_host) {
  return no_bytes(on_card, on_host);
}
ALSO(cusolverDnXsyevBatched_bufferSize, cusolverDnXsyevd_bufferSize);
ENTRY(int, cusolverDnXsytrs_bufferSize, void*, int, std::int64_t, std::int64_t, int, void*,
      std::int64_t, void*, int, void*, std::int64_t, std::size_t* on_card, std::size_t* on_host) {
  return no_bytes(on_card, on_host);
}
ENTRY(int, cusolverDnXgeev_bufferSize, void*, void*, int, int, std::int64_t, int, void*,
      std::int64_t, int, void*, int, void*, std::int64_t, int, void*, std::int64_t, int,
      std::size_t* on_card, std::size_t* on_host) {
  return no_bytes(on_card, on_host);
}

}  // namespace
}  // namespace memreplay::card
