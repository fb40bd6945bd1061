// Calls the snapshot writer that PyTorch has in C++ and hands its bytes to Python (ctypes).
#include <cstddef>
#include <string>

namespace torch::cuda {
std::string _memory_snapshot_pickled();
}

extern "C" const char* snapshot_pickled(std::size_t* size) {
  static std::string bytes;
  bytes = torch::cuda::_memory_snapshot_pickled();
  *size = bytes.size();
  return bytes.data();
}
