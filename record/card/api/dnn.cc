// cuDNN: descriptors that remember what they are told, and plans with one engine, whose workspace
// is a stated figure.
#include <cstdint>
#include <cstring>
#include <map>
#include <string>

#include "record/card/api/handles.h"
#include "record/card/device.h"
#include "record/card/entry.h"

namespace memreplay::card {
namespace {

std::uint64_t assumed_workspace() {
  Assume("cuDNN's workspace assumed (MEMREPLAY_CARD_CUDNN_WORKSPACE, 0 bytes by default)");
  return device().settings.cudnn_workspace;
}

OBJECT(cudnnCreate, cudnnDestroy)
OBJECT(cudnnCreateTensorDescriptor, cudnnDestroyTensorDescriptor)
OBJECT(cudnnCreateFilterDescriptor, cudnnDestroyFilterDescriptor)
OBJECT(cudnnCreateConvolutionDescriptor, cudnnDestroyConvolutionDescriptor)
OBJECT(cudnnCreateActivationDescriptor, cudnnDestroyActivationDescriptor)
OBJECT(cudnnCreateDropoutDescriptor, cudnnDestroyDropoutDescriptor)
OBJECT(cudnnCreatePoolingDescriptor, cudnnDestroyPoolingDescriptor)
OBJECT(cudnnCreateSpatialTransformerDescriptor, cudnnDestroySpatialTransformerDescriptor)
OBJECT(cudnnCreateCTCLossDescriptor, cudnnDestroyCTCLossDescriptor)

ENTRY(std::size_t, cudnnGetVersion, void) { return static_cast<std::size_t>(versions().cudnn); }
ENTRY(std::size_t, cudnnGetCudartVersion, void) {
  return static_cast<std::size_t>(versions().cuda);
}
ENTRY(int, cudnnGetProperty, int part, int* value) {
  const int version = versions().cudnn;
  const int unit = version >= 90000 ? 10000 : 1000;  // 9.1.0 is 90100, 8.9.7 is 8907
  *value = part == 0 ? version / unit : part == 1 ? version % unit / 100 : version % 100;
  return 0;
}
ENTRY(const char*, cudnnGetErrorString, int status) {
  return status == 0 ? "CUDNN_STATUS_SUCCESS" : "CUDNN_STATUS_NOT_SUPPORTED";
}
ENTRY(void, cudnnGetLastErrorString, char* text, std::size_t size) {
  if (size != 0) *text = 0;
}

// The graph interface.
struct Descriptor {
  int type;
  struct Attribute {
    int type;
    std::int64_t count;
    std::string bytes;
  };
  std::map<int, Attribute> attributes;
};
std::size_t size_of_attribute(int type) {
  switch (type) {
    case 2: return 1;  // bool
    case 1:
    case 4: return 4;  // data type, float... as listed in the guide
    case 0:
    case 3:
    case 5:
    case 6: return 8;   // handle, int64, double, void pointer
    case 15: return 8;  // descriptor
    default: return 4;  // enumerations
  }
}

ENTRY(int, cudnnBackendCreateDescriptor, int type, Descriptor** out) {
  *out = new Descriptor{type, {}};
  return 0;
}
ENTRY(int, cudnnBackendDestroyDescriptor, Descriptor* descriptor) {
  delete descriptor;
  return 0;
}
ENTRY(int, cudnnBackendFinalize, Descriptor*) { return 0; }
ENTRY(int, cudnnBackendExecute, void*, Descriptor*, Descriptor*) {
  device().launch();
  return 0;
}
ENTRY(int, cudnnBackendSetAttribute, Descriptor* descriptor, int name, int type, std::int64_t count,
      const void* values) {
  if (count < 0) return 2000;
  std::string bytes(static_cast<std::size_t>(count) * size_of_attribute(type), '\0');
  if (values != nullptr) std::memcpy(bytes.data(), values, bytes.size());
  descriptor->attributes[name] = {type, count, bytes};
  return 0;
}

enum AttributeName : int {
  kEngineHeuristicResults = 202,
  kEngineConfigEngine = 300,
  kPlanWorkspace = 402,
  kGraphEngineCount = 802,
  kEngineLayoutOrBehaviour = 1301,
};
ENTRY(int, cudnnBackendGetAttribute, const Descriptor* descriptor, int name, int type,
      std::int64_t wanted, std::int64_t* count, void* values) {
  std::int64_t ignored;
  if (count == nullptr) count = &ignored;
  const auto answer = [&](std::int64_t value) {
    *count = 1;
    if (values != nullptr && wanted > 0) std::memcpy(values, &value, sizeof value);
    return 0;
  };
  switch (name) {
    case kEngineHeuristicResults:
    case kEngineConfigEngine: *count = 1; return 0;
    case kPlanWorkspace: return answer(static_cast<std::int64_t>(assumed_workspace()));
    case kGraphEngineCount: return answer(1);
    case kEngineLayoutOrBehaviour: *count = 0; return 0;
  }
  const auto found = descriptor->attributes.find(name);
  if (found == descriptor->attributes.end()) {
    *count = 0;
    return 0;
  }
  *count = found->second.count;
  if (values != nullptr && wanted > 0) {
    const std::size_t room = static_cast<std::size_t>(wanted) * size_of_attribute(type);
    const std::string& bytes = found->second.bytes;
    std::memcpy(values, bytes.data(), bytes.size() < room ? bytes.size() : room);
  }
  return 0;
}

// Batch normalisation. Its reserve space holds a mask only when an activation is fused to it.
ENTRY(int, cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize, void*, int, int, void*, void*,
      void*, void*, void*, std::size_t* size) {
  *size = assumed_workspace();
  return 0;
}
ENTRY(int, cudnnGetBatchNormalizationBackwardExWorkspaceSize, void*, int, int, void*, void*, void*,
      void*, void*, void*, void*, std::size_t* size) {
  *size = assumed_workspace();
  return 0;
}
ENTRY(int, cudnnGetBatchNormalizationTrainingExReserveSpaceSize, void*, int, int, void*, void*,
      std::size_t* size) {
  *size = 0;
  return 0;
}

}  // namespace
}  // namespace memreplay::card
