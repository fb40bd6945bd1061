// cuFFT, NVRTC and CUPTI.
#include <cstddef>
#include <cstring>

#include "record/card/api/handles.h"
#include "record/card/device/device.h"
#include "record/card/device/entry.h"

namespace memreplay::card {
namespace {

DOES(cufftCreate, (int* plan), *plan = 1)
ENTRY(int, cufftDestroy, int) { return 0; }
ENTRY(int, cufftXtMakePlanMany, int, int, void*, void*, long long, long long, int, void*, long long,
      long long, int, long long, size_t* workspace, int) {
  Assume("the cuFFT workspace is assumed to be 0 bytes");
  *workspace = 0;
  return 0;
}

// Code that is compiled at run time is loaded (driver.cc) and never run, so any image will do.
constexpr char kImage[] = "code";

OBJECT(nvrtcCreateProgram, nvrtcFreeProgram)
ENTRY(int, nvrtcDestroyProgram, void** program) {
  std::free(*program);
  *program = nullptr;
  return 0;
}
ENTRY(int, nvrtcVersion, int* major, int* minor) {
  *major = Versions().cuda / 1000;
  *minor = Versions().cuda % 1000 / 10;
  return 0;
}
DOES(nvrtcGetCUBINSize, (void*, size_t* size), *size = sizeof kImage)
ALSO(nvrtcGetPTXSize, nvrtcGetCUBINSize);
DOES(nvrtcGetCUBIN, (void*, char* image), std::memcpy(image, kImage, sizeof kImage))
ALSO(nvrtcGetPTX, nvrtcGetCUBIN);
DOES(nvrtcGetProgramLogSize, (void*, size_t* size), *size = 1)
DOES(nvrtcGetProgramLog, (void*, char* text), *text = 0)
DOES(nvrtcGetLoweredName, (void*, const char* name, const char** lowered), *lowered = name)
ENTRY(const char*, nvrtcGetErrorString, int error) {
  return error == 0 ? "NVRTC_SUCCESS" : "NVRTC_ERROR_INTERNAL_ERROR";
}

// A profiler is answered that there is nothing to profile, and requests the text of that error.
DOES(cuptiGetResultString, (int result, const char** text),
     *text = result == 0 ? "CUPTI_SUCCESS" : "CUPTI_ERROR_NOT_INITIALIZED")

}  // namespace
}  // namespace memreplay::card
