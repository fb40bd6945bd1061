// cuDNN: descriptors that keep their attributes, and plans with one engine and a stated workspace.
#include "record/card/api/dnn.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <string>

#include "record/card/api/handles.h"
#include "record/card/device/device.h"
#include "record/card/device/entry.h"

namespace memreplay::card {

size_t AssumedCudnnWorkspace() {
  const uint64_t bytes = TheDevice().settings.cudnn_workspace;
  Assume(("the cuDNN workspace is assumed to be " + std::to_string(bytes) +
          " bytes (--cudnn-workspace changes this)")
             .c_str());
  return bytes;
}

namespace {

struct DnnHandle {
  void* stream = nullptr;
};
ENTRY(int, cudnnCreate, DnnHandle** out) {
  *out = new DnnHandle;
  TheDevice().Made(kDnnObject, __builtin_return_address(0), *out);
  return 0;
}
ENTRY(int, cudnnDestroy, MayBeNull<DnnHandle> handle) {
  TheDevice().Destroyed(kDnnObject, handle);
  delete handle.get();
  return 0;
}
ENTRY(int, cudnnSetStream, DnnHandle* handle, void* stream) {
  handle->stream = stream;
  return 0;
}
ENTRY(int, cudnnGetStream, const DnnHandle* handle, void** stream) {
  *stream = handle->stream;
  return 0;
}
OBJECT(cudnnCreateConvolutionDescriptor, cudnnDestroyConvolutionDescriptor)
OBJECT(cudnnCreateActivationDescriptor, cudnnDestroyActivationDescriptor)
OBJECT(cudnnCreateDropoutDescriptor, cudnnDestroyDropoutDescriptor)
OBJECT(cudnnCreatePoolingDescriptor, cudnnDestroyPoolingDescriptor)
OBJECT(cudnnCreateSpatialTransformerDescriptor, cudnnDestroySpatialTransformerDescriptor)
OBJECT(cudnnCreateCTCLossDescriptor, cudnnDestroyCTCLossDescriptor)

ENTRY(size_t, cudnnGetVersion, void) { return static_cast<size_t>(Versions().cudnn); }
ENTRY(size_t, cudnnGetCudartVersion, void) { return static_cast<size_t>(Versions().cuda); }
ENTRY(int, cudnnGetProperty, int part, int* value) {
  const int version = Versions().cudnn;
  const int unit = version >= 90000 ? 10000 : 1000;  // 9.1.0 is 90100, 8.9.7 is 8907
  *value = part == 0 ? version / unit : part == 1 ? version % unit / 100 : version % 100;
  return 0;
}
ENTRY(const char*, cudnnGetErrorString, int status) {
  return status == 0 ? "CUDNN_STATUS_SUCCESS" : "CUDNN_STATUS_NOT_SUPPORTED";
}
ENTRY(void, cudnnGetLastErrorString, char* text, size_t size) {
  if (size != 0) *text = 0;
}

// The graph interface: descriptors of operations make a graph, for which heuristics name engine
// configurations, one of which becomes a plan. Here every graph has one engine.
enum AttributeType : int {
  kHandle = 0,
  kBoolean = 2,
  kInt64 = 3,
  kDouble = 5,
  kVoidPointer = 6,
  kDescriptor = 15,
  kFraction = 26,
};
enum AttributeName : int {
  kHeuristicResults = 202,
  kConfigurationEngine = 300,
  kConfigurationWorkspace = 303,
  kConfigurationSharedMemory = 304,
  kPlanWorkspace = 402,
  kGraphEngines = 802,
  kEngineIndex = 1301,
};
size_t SizeOfAttribute(int type) {
  switch (type) {
    case kBoolean: return 1;
    case kHandle:
    case kInt64:
    case kDouble:
    case kVoidPointer:
    case kDescriptor:
    case kFraction: return 8;
    default: return 4;  // float, int32 and enumerations
  }
}

struct Attribute {
  int type;
  int64_t count;
  std::string bytes;
};
struct Descriptor {
  int type;
  std::map<int, Attribute> attributes;
};

ENTRY(int, cudnnBackendCreateDescriptor, int type, Descriptor** out) {
  *out = new Descriptor{type, {}};
  return 0;
}
ENTRY(int, cudnnBackendDestroyDescriptor, MayBeNull<Descriptor> descriptor) {
  delete descriptor.get();
  return 0;
}
ENTRY(int, cudnnBackendFinalize, Descriptor*) { return 0; }
ENTRY(int, cudnnBackendExecute, void*, Descriptor*, Descriptor*) {
  TheDevice().Launch();
  return 0;
}
ENTRY(int, cudnnBackendSetAttribute, Descriptor* descriptor, int name, int type, int64_t count,
      const void* values) {
  if (count < 0) return 2000;  // bad parameter
  std::string bytes(static_cast<size_t>(count) * SizeOfAttribute(type), '\0');
  if (values != nullptr) std::memcpy(bytes.data(), values, bytes.size());
  descriptor->attributes[name] = {type, count, bytes};
  return 0;
}

// Returns the value of an attribute that was never set, or -1 if it has none.
int64_t AnswerFor(int name) {
  switch (name) {
    case kPlanWorkspace:
    case kConfigurationWorkspace: return static_cast<int64_t>(AssumedCudnnWorkspace());
    case kGraphEngines: return 1;
    case kConfigurationSharedMemory:
    case kEngineIndex: return 0;
    default: return -1;
  }
}

ENTRY(int, cudnnBackendGetAttribute, const Descriptor* descriptor, int name, int type,
      int64_t wanted, MayBeNull<int64_t> count_or_null, void* values) {
  int64_t ignored;
  int64_t* count = count_or_null != nullptr ? count_or_null.get() : &ignored;
  // The caller made the descriptors to be filled here; ours need nothing filled.
  if (name == kHeuristicResults || name == kConfigurationEngine) {
    *count = 1;
    return 0;
  }
  const auto give = [&](int64_t there, const void* bytes, size_t size) {
    *count = there;
    if (values != nullptr && wanted > 0) std::memcpy(values, bytes, size);
    return 0;
  };
  if (const auto found = descriptor->attributes.find(name); found != descriptor->attributes.end()) {
    const Attribute& attribute = found->second;
    const size_t room = static_cast<size_t>(wanted) * SizeOfAttribute(type);
    return give(attribute.count, attribute.bytes.data(), std::min(attribute.bytes.size(), room));
  }
  if (const int64_t value = AnswerFor(name); value >= 0) {
    return give(1, &value, SizeOfAttribute(type));
  }
  *count = 0;  // no knobs and no notes
  return 0;
}

// Batch normalisation. Its reserve space holds a mask only when an activation is fused to it.
ENTRY(int, cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize, void*, int, int, void*, void*,
      void*, void*, void*, size_t* size) {
  *size = AssumedCudnnWorkspace();
  return 0;
}
ENTRY(int, cudnnGetBatchNormalizationBackwardExWorkspaceSize, void*, int, int, void*, void*, void*,
      void*, void*, void*, void*, size_t* size) {
  *size = AssumedCudnnWorkspace();
  return 0;
}
ENTRY(int, cudnnGetBatchNormalizationTrainingExReserveSpaceSize, void*, int, int, void*, void*,
      size_t* size) {
  *size = 0;
  return 0;
}

ENTRY(int, cudnnGetCTCLossWorkspaceSize, void*, void*, void*, const int*, const int*, const int*,
      int, void*, size_t* size) {
  *size = AssumedCudnnWorkspace();
  return 0;
}
ENTRY(int, cudnnGetCTCLossWorkspaceSize_v8, void*, int, void*, void*, void*, size_t* size) {
  *size = AssumedCudnnWorkspace();
  return 0;
}

}  // namespace
}  // namespace memreplay::card
