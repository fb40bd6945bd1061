// cuDNN: descriptors that keep their attributes, and plans with one engine and a stated workspace.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <string>

#include "record/card/api/handles.h"
#include "record/card/device/device.h"
#include "record/card/device/entry.h"

namespace memreplay::card {
namespace {

// Returns the workspace in bytes that the settings assume, since only cuDNN knows it, and notes
// that.
size_t AssumedCudnnWorkspace() {
  const uint64_t bytes = TheDevice().settings.cudnn_workspace;
  Assume(("the cuDNN workspace is assumed to be " + std::to_string(bytes) +
          " bytes (--cudnn-workspace changes this)")
             .c_str());
  return bytes;
}

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
DOES(cudnnSetStream, (DnnHandle * handle, void* stream), handle->stream = stream)
DOES(cudnnGetStream, (const DnnHandle* handle, void** stream), *stream = handle->stream)
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

DOES(cudnnBackendCreateDescriptor, (int type, Descriptor** out), *out = new Descriptor{type, {}})
DOES(cudnnBackendDestroyDescriptor, (MayBeNull<Descriptor> descriptor), delete descriptor.get())
ENTRY(int, cudnnBackendFinalize, Descriptor*) { return 0; }
DOES(cudnnBackendExecute, (void*, Descriptor*, Descriptor*), TheDevice().Launch())
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
DOES(cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize,
     (void*, int, int, void*, void*, void*, void*, void*, size_t* size),
     *size = AssumedCudnnWorkspace())
DOES(cudnnGetBatchNormalizationBackwardExWorkspaceSize,
     (void*, int, int, void*, void*, void*, void*, void*, void*, void*, size_t* size),
     *size = AssumedCudnnWorkspace())
DOES(cudnnGetBatchNormalizationTrainingExReserveSpaceSize,
     (void*, int, int, void*, void*, size_t* size), *size = 0)

DOES(cudnnGetCTCLossWorkspaceSize,
     (void*, void*, void*, const int*, const int*, const int*, int, void*, size_t* size),
     *size = AssumedCudnnWorkspace())
DOES(cudnnGetCTCLossWorkspaceSize_v8, (void*, int, void*, void*, void*, size_t* size),
     *size = AssumedCudnnWorkspace())

// Recurrent networks: the sizes of weights are known, those of reserve space are not.
enum { kMaxDimensions = 8, kBadParameter = 2000 };

struct Tensor {
  int type = 0, dimensions = 0;
  int sizes[kMaxDimensions] = {}, strides[kMaxDimensions] = {};
};
OBJECT_OF(Tensor, cudnnCreateTensorDescriptor, cudnnDestroyTensorDescriptor)
ENTRY(int, cudnnSetTensorNdDescriptor, Tensor* tensor, int type, int dimensions, const int* sizes,
      const int* strides) {
  if (dimensions < 0 || dimensions > kMaxDimensions) return kBadParameter;
  tensor->type = type;
  tensor->dimensions = dimensions;
  for (int i = 0; i < dimensions; ++i) {
    tensor->sizes[i] = sizes[i];
    tensor->strides[i] = strides[i];
  }
  return 0;
}
ENTRY(int, cudnnGetTensorNdDescriptor, const Tensor* tensor, int wanted, int* type, int* dimensions,
      int* sizes, int* strides) {
  *type = tensor->type;
  *dimensions = tensor->dimensions;
  for (int i = 0; i < wanted && i < tensor->dimensions; ++i) {
    sizes[i] = tensor->sizes[i];
    strides[i] = tensor->strides[i];
  }
  return 0;
}

// Filters also have a format, which changes no size.
ALSO(cudnnCreateFilterDescriptor, cudnnCreateTensorDescriptor);
ALSO(cudnnDestroyFilterDescriptor, cudnnDestroyTensorDescriptor);
ENTRY(int, cudnnSetFilterNdDescriptor, Tensor* filter, int type, int, int dimensions,
      const int* sizes) {
  const int strides[kMaxDimensions] = {};
  return cudnnSetTensorNdDescriptor(filter, type, dimensions, sizes, strides);
}
ENTRY(int, cudnnGetFilterNdDescriptor, const Tensor* filter, int wanted, int* type, int* format,
      int* dimensions, int* sizes) {
  int strides[kMaxDimensions];
  *format = 0;
  return cudnnGetTensorNdDescriptor(filter, wanted < kMaxDimensions ? wanted : kMaxDimensions, type,
                                    dimensions, sizes, strides);
}

struct Network {
  int cell = 0, bias = 0, direction = 0, skips_input = 0, type = 0;
  int input = 0, hidden = 0, projection = 0, layers = 0;

  int gates() const { return cell <= 1 ? 1 : cell == 2 ? 4 : 3; }  // two plain cells, LSTM, GRU
  int directions() const { return direction == 0 ? 1 : 2; }
  int biases() const { return bias == 0 ? 0 : bias == 3 ? 1 : 2; }
  int output() const { return projection != 0 ? projection : hidden; }
  uint64_t bytes() const { return type == 1 ? 8 : type == 2 || type == 9 ? 2 : 4; }
  // Returns the inputs of the first matrices in one direction of a layer.
  uint64_t Inputs(int pseudo_layer) const {
    const int layer = pseudo_layer / directions();
    return static_cast<uint64_t>(layer == 0 ? input : output() * directions());
  }
  bool Projects() const { return projection != 0 && projection != hidden; }
  // Returns the elements of the matrices in one direction of a layer, without its biases.
  uint64_t Matrices(int pseudo_layer) const {
    const auto h = static_cast<uint64_t>(hidden), o = static_cast<uint64_t>(output());
    return static_cast<uint64_t>(gates()) * h * (Inputs(pseudo_layer) + o) +
           (Projects() ? h * o : 0);
  }
  uint64_t BiasElements() const {
    return static_cast<uint64_t>(gates() * biases()) * static_cast<uint64_t>(hidden);
  }
  int PseudoLayers() const { return layers * directions(); }
  uint64_t AllMatrices() const {
    uint64_t sum = 0;
    for (int i = 0; i < PseudoLayers(); ++i) sum += Matrices(i);
    return sum;
  }
};
OBJECT_OF(Network, cudnnCreateRNNDescriptor, cudnnDestroyRNNDescriptor)
DOES(cudnnSetRNNDescriptor_v8,
     (Network * network, int, int cell, int bias, int direction, int input_mode, int type, int, int,
      int input, int hidden, int projection, int layers),
     *network = {cell, bias, direction, input_mode, type, input, hidden, projection, layers})

struct Data {
  int type = 0, layout = 0, steps = 0, batch = 0, width = 0;
};
OBJECT_OF(Data, cudnnCreateRNNDataDescriptor, cudnnDestroyRNNDataDescriptor)
DOES(cudnnSetRNNDataDescriptor,
     (Data * data, int type, int layout, int steps, int batch, int width),
     *data = {type, layout, steps, batch, width})

ENTRY(int, cudnnGetRNNWeightSpaceSize, void*, const Network* network, size_t* size) {
  const auto layers = static_cast<uint64_t>(network->PseudoLayers());
  *size = (network->AllMatrices() + layers * network->BiasElements()) * network->bytes();
  return 0;
}

// The matrices of all layers come first, then the biases of all layers; of each, the input's gates
// and then the state's, one after the other.
ENTRY(int, cudnnGetRNNWeightParams, void*, const Network* network, int pseudo_layer, size_t,
      void* space, int which, MayBeNull<Tensor> matrix, MayBeNull<void*> matrix_at,
      MayBeNull<Tensor> bias, MayBeNull<void*> bias_at) {
  const int gates = network->gates();
  uint64_t at = 0;
  for (int i = 0; i < pseudo_layer; ++i) at += network->Matrices(i);
  const auto hidden = static_cast<uint64_t>(network->hidden);
  const auto output = static_cast<uint64_t>(network->output());
  uint64_t rows = hidden, columns = network->Inputs(pseudo_layer);
  if (which < gates) {
    at += static_cast<uint64_t>(which) * rows * columns;
  } else {
    at += static_cast<uint64_t>(gates) * rows * columns;
    columns = output;
    at += static_cast<uint64_t>(which - gates) * rows * columns;
    if (which == 2 * gates) {
      rows = output;  // the projection
      columns = hidden;
    }
  }
  const bool has_matrix = which < 2 * gates || (which == 2 * gates && network->Projects());
  const auto describe = [network](Tensor* tensor, uint64_t r, uint64_t c) {
    if (tensor == nullptr) return;
    const int row = static_cast<int>(r), column = static_cast<int>(c);
    *tensor = {network->type, 3, {1, row, column}, {row * column, column, 1}};
  };
  const auto place = [&](uint64_t element) {
    return Pointer(Number(space) + element * network->bytes());
  };
  if (matrix_at != nullptr) *matrix_at = has_matrix ? place(at) : nullptr;
  describe(matrix, has_matrix ? rows : 0, has_matrix ? columns : 0);
  const bool has_bias =
      network->biases() == 2 ? which < 2 * gates : which < network->biases() * gates;
  const uint64_t bias_start =
      network->AllMatrices() + static_cast<uint64_t>(pseudo_layer) * network->BiasElements();
  if (bias_at != nullptr)
    *bias_at = has_bias ? place(bias_start + static_cast<uint64_t>(which) * hidden) : nullptr;
  describe(bias, has_bias ? hidden : 0, has_bias ? 1 : 0);
  return 0;
}

// Returns bytes. `rows` is the sum of the batch sizes of all steps.
size_t ReserveSpace(const Network& network, size_t rows) {
  Assume(
      "the cuDNN reserve space of a recurrent network is assumed to hold the gates and the state "
      "of each step");
  return static_cast<size_t>(network.PseudoLayers()) * rows * static_cast<size_t>(network.hidden) *
         static_cast<size_t>(network.gates() + 1) * network.bytes();
}
ENTRY(int, cudnnGetRNNTempSpaceSizes, void*, const Network* network, int training, const Data* data,
      MayBeNull<size_t> workspace, MayBeNull<size_t> reserve) {
  if (workspace != nullptr) *workspace = AssumedCudnnWorkspace();
  if (reserve == nullptr) return 0;
  const auto rows = static_cast<size_t>(data->steps) * static_cast<size_t>(data->batch);
  *reserve = training == 0 ? 0 : ReserveSpace(*network, rows);
  return 0;
}

// Sets up a network for builds with cuDNN 8. The first step's tensor has the size of the input.
ENTRY(int, cudnnSetRNNDescriptor_v6, void*, Network* network, int hidden, int layers, void*,
      int input_mode, int direction, int cell, int, int type) {
  constexpr int kTwoBiases = 2;
  *network = {cell, kTwoBiases, direction, input_mode, type, 0, hidden, 0, layers};
  return 0;
}
DOES(cudnnSetRNNProjectionLayers, (void*, Network* network, int projection, int),
     network->projection = projection)
ENTRY(int, cudnnGetRNNParamsSize, void* handle, Network* network, const Tensor* first, size_t* size,
      int) {
  network->input = first->sizes[1];
  return cudnnGetRNNWeightSpaceSize(handle, network, size);
}
ENTRY(int, cudnnGetRNNLinLayerMatrixParams, void* handle, Network* network, int pseudo_layer,
      const Tensor* first, const Tensor*, void* space, int which, Tensor* matrix, void** at) {
  network->input = first->sizes[1];
  return cudnnGetRNNWeightParams(handle, network, pseudo_layer, 0, space, which, matrix, at,
                                 nullptr, nullptr);
}
ENTRY(int, cudnnGetRNNLinLayerBiasParams, void* handle, Network* network, int pseudo_layer,
      const Tensor* first, const Tensor*, void* space, int which, Tensor* bias, void** at) {
  network->input = first->sizes[1];
  return cudnnGetRNNWeightParams(handle, network, pseudo_layer, 0, space, which, nullptr, nullptr,
                                 bias, at);
}
DOES(cudnnGetRNNWorkspaceSize, (void*, const Network*, int, Tensor* const*, size_t* size),
     *size = AssumedCudnnWorkspace())
ENTRY(int, cudnnGetRNNTrainingReserveSize, void*, const Network* network, int steps,
      Tensor* const* inputs, size_t* size) {
  size_t rows = 0;
  for (int i = 0; i < steps; ++i) rows += static_cast<size_t>(inputs[i]->sizes[0]);
  *size = ReserveSpace(*network, rows);
  return 0;
}

ENTRY(int, cudnnDropoutGetStatesSize, void*, size_t* size) {
  Assume("the state of cuDNN dropout is assumed to be 0 bytes");
  *size = 0;
  return 0;
}

}  // namespace
}  // namespace memreplay::card
