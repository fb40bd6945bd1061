// cuFFT, NVRTC and CUPTI.
#include <cstddef>
#include <cstring>

#include "record/card/api/handles.h"
#include "record/card/device/device.h"
#include "record/card/device/entry.h"

namespace memreplay::card {
namespace {

ENTRY(int, cufftCreate, int* plan) {
  *plan = 1;
  return 0;
}
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
ENTRY(int, nvrtcGetCUBINSize, void*, size_t* size) {
  *size = sizeof kImage;
  return 0;
}
ALSO(nvrtcGetPTXSize, nvrtcGetCUBINSize);
ENTRY(int, nvrtcGetCUBIN, void*, char* image) {
  std::memcpy(image, kImage, sizeof kImage);
  return 0;
}
ALSO(nvrtcGetPTX, nvrtcGetCUBIN);
ENTRY(int, nvrtcGetProgramLogSize, void*, size_t* size) {
  *size = 1;
  return 0;
}
ENTRY(int, nvrtcGetProgramLog, void*, char* text) {
  *text = 0;
  return 0;
}
ENTRY(int, nvrtcGetLoweredName, void*, const char* name, const char** lowered) {
  *lowered = name;
  return 0;
}
ENTRY(const char*, nvrtcGetErrorString, int error) {
  return error == 0 ? "NVRTC_SUCCESS" : "NVRTC_ERROR_INTERNAL_ERROR";
}

// A profiler is answered that there is nothing to profile, and requests the text of that error.
ENTRY(int, cuptiGetResultString, int result, const char** text) {
  *text = result == 0 ? "CUPTI_SUCCESS" : "CUPTI_ERROR_NOT_INITIALIZED";
  return 0;
}

}  // namespace
}  // namespace memreplay::card
