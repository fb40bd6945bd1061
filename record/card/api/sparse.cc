// cuSPARSE: matrices know their shape; workspaces and the size of a sparse product are assumed.
#include <cstddef>
#include <cstdint>

#include "record/card/api/handles.h"
#include "record/card/device/device.h"
#include "record/card/device/entry.h"

namespace memreplay::card {
namespace {

void NoWorkspace(size_t* size) {
  Assume("the cuSPARSE workspace is assumed to be 0 bytes");
  *size = 0;
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
DOES(cusparseGetVersion, (void*, int* version), *version = Versions().cuda)

struct Matrix {
  int64_t rows, columns, nonzero;
};
DOES(cusparseCreateCsr, (Matrix * *out, int64_t rows, int64_t columns, int64_t nonzero),
     *out = new Matrix{rows, columns, nonzero})
ALSO(cusparseCreateCoo, cusparseCreateCsr);
ALSO(cusparseCreateCsc, cusparseCreateCsr);
DOES(cusparseDestroySpMat, (Matrix * matrix), delete matrix)
ENTRY(int, cusparseSpMatGetSize, const Matrix* matrix, int64_t* rows, int64_t* columns,
      int64_t* nonzero) {
  *rows = matrix->rows;
  *columns = matrix->columns;
  *nonzero = matrix->nonzero;
  return 0;
}

DOES(cusparseSpMV_bufferSize,
     (void*, int, void*, void*, void*, void*, void*, int, int, size_t* size), NoWorkspace(size))
DOES(cusparseSpMM_bufferSize,
     (void*, int, int, void*, void*, void*, void*, void*, int, int, size_t* size),
     NoWorkspace(size))
ALSO(cusparseSDDMM_bufferSize, cusparseSpMM_bufferSize);
DOES(cusparseSpSV_bufferSize,
     (void*, int, void*, void*, void*, void*, int, int, void*, size_t* size), NoWorkspace(size))
DOES(cusparseSpSM_bufferSize,
     (void*, int, int, void*, void*, void*, void*, int, int, void*, size_t* size),
     NoWorkspace(size))

// A product of two sparse matrices.
DOES(cusparseSpGEMM_workEstimation,
     (void*, int, int, void*, void*, void*, void*, void*, int, int, void*, size_t* size, void*),
     NoWorkspace(size))
ENTRY(int, cusparseSpGEMM_compute, void*, int, int, void*, const Matrix* a, const Matrix* b, void*,
      Matrix* c, int, int, void*, size_t* size, void*) {
  Assume("a product of sparse matrices is assumed to have as many values as both factors together");
  c->nonzero = a->nonzero + b->nonzero;
  NoWorkspace(size);
  return 0;
}

// The older interface.
DOES(cusparseXcoosort_bufferSizeExt, (void*, int, int, int, void*, void*, size_t* size),
     NoWorkspace(size))
ALSO(cusparseXcsrsort_bufferSizeExt, cusparseXcoosort_bufferSizeExt);
// No pivot is zero.
DOES(cusparseXbsrsv2_zeroPivot, (void*, void*, int* position), *position = -1)
ALSO(cusparseXbsrsm2_zeroPivot, cusparseXbsrsv2_zeroPivot);

}  // namespace
}  // namespace memreplay::card
