// cuSPARSE: matrices know their shape; workspaces and the size of a sparse product are assumed.
#include <cstddef>
#include <cstdint>

#include "record/card/api/handles.h"
#include "record/card/device/device.h"
#include "record/card/device/entry.h"

namespace memreplay::card {
namespace {

int NoWorkspace(size_t* size) {
  Assume("the cuSPARSE workspace is assumed to be 0 bytes");
  *size = 0;
  return 0;
}

COUNTED_OBJECT(kSparseObject, cusparseCreate, cusparseDestroy)
OBJECT(cusparseCreateMatDescr, cusparseDestroyMatDescr)
OBJECT(cusparseCreateDnMat, cusparseDestroyDnMat)
OBJECT(cusparseCreateDnVec, cusparseDestroyDnVec)
OBJECT(cusparseCreateBsrsv2Info, cusparseDestroyBsrsv2Info)
OBJECT(cusparseCreateBsrsm2Info, cusparseDestroyBsrsm2Info)
OBJECT(cusparseSpSV_createDescr, cusparseSpSV_destroyDescr)
OBJECT(cusparseSpSM_createDescr, cusparseSpSM_destroyDescr)
OBJECT(cusparseSpGEMM_createDescr, cusparseSpGEMM_destroyDescr)
ENTRY(int, cusparseGetVersion, void*, int* version) {
  *version = Versions().cuda;
  return 0;
}

struct Matrix {
  int64_t rows, columns, nonzero;
};
ENTRY(int, cusparseCreateCsr, Matrix** out, int64_t rows, int64_t columns, int64_t nonzero) {
  *out = new Matrix{rows, columns, nonzero};
  return 0;
}
ALSO(cusparseCreateCoo, cusparseCreateCsr);
ALSO(cusparseCreateCsc, cusparseCreateCsr);
ENTRY(int, cusparseDestroySpMat, Matrix* matrix) {
  delete matrix;
  return 0;
}
ENTRY(int, cusparseSpMatGetSize, const Matrix* matrix, int64_t* rows, int64_t* columns,
      int64_t* nonzero) {
  *rows = matrix->rows;
  *columns = matrix->columns;
  *nonzero = matrix->nonzero;
  return 0;
}

ENTRY(int, cusparseSpMV_bufferSize, void*, int, void*, void*, void*, void*, void*, int, int,
      size_t* size) {
  return NoWorkspace(size);
}
ENTRY(int, cusparseSpMM_bufferSize, void*, int, int, void*, void*, void*, void*, void*, int, int,
      size_t* size) {
  return NoWorkspace(size);
}
ALSO(cusparseSDDMM_bufferSize, cusparseSpMM_bufferSize);
ENTRY(int, cusparseSpSV_bufferSize, void*, int, void*, void*, void*, void*, int, int, void*,
      size_t* size) {
  return NoWorkspace(size);
}
ENTRY(int, cusparseSpSM_bufferSize, void*, int, int, void*, void*, void*, void*, int, int, void*,
      size_t* size) {
  return NoWorkspace(size);
}

// A product of two sparse matrices.
ENTRY(int, cusparseSpGEMM_workEstimation, void*, int, int, void*, void*, void*, void*, void*, int,
      int, void*, size_t* size, void*) {
  return NoWorkspace(size);
}
ENTRY(int, cusparseSpGEMM_compute, void*, int, int, void*, const Matrix* a, const Matrix* b, void*,
      Matrix* c, int, int, void*, size_t* size, void*) {
  Assume("a product of sparse matrices is assumed to have as many values as both factors together");
  c->nonzero = a->nonzero + b->nonzero;
  return NoWorkspace(size);
}

// The older interface.
ENTRY(int, cusparseXcoosort_bufferSizeExt, void*, int, int, int, void*, void*, size_t* size) {
  return NoWorkspace(size);
}
ALSO(cusparseXcsrsort_bufferSizeExt, cusparseXcoosort_bufferSizeExt);
ENTRY(int, cusparseXbsrsv2_zeroPivot, void*, void*, int* position) {
  *position = -1;  // none
  return 0;
}
ALSO(cusparseXbsrsm2_zeroPivot, cusparseXbsrsv2_zeroPivot);

}  // namespace
}  // namespace memreplay::card
