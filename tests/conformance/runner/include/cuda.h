// The few driver declarations that c10's headers mention, written here so that nothing depends on
// an installed toolkit.
#pragma once

#define CUDA_VERSION 12000

struct CUstream_st;
struct CUevent_st;
struct CUgraph_st;
struct CUgraphNode_st;
struct CUgraphExec_st;
struct CUctx_st;
typedef CUstream_st* CUstream;
typedef CUctx_st* CUcontext;
typedef unsigned long long CUdeviceptr;
typedef int CUdevice;
typedef enum cudaError_enum {
  CUDA_SUCCESS = 0,
  CUDA_ERROR_INVALID_VALUE = 1,
  CUDA_ERROR_OUT_OF_MEMORY = 2,
  CUDA_ERROR_NOT_SUPPORTED = 801,
} CUresult;
