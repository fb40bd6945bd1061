#include "record/card/stubs/library_family.h"

#include <cstring>

namespace memreplay::card {
namespace {

// A function whose name has one of these parts reports something to its caller.
constexpr char kInformative[] =
    "Get Create Init Size Query Version Info String Malloc Alloc Import Export Open Estimate Nnz "
    "Count Search Is Supported createDescr zeroPivot Plan Subscribe Find Estimation Next Ptr "
    "AddNode "
    "Grow Shrink Stats WindowRegister Simulate";

constexpr LibraryFamily kFamilies[] = {
    {"cudart", "cuda __cuda", 801, 1, kInformative},
    {"cuda", "cu", 801, 1, kInformative},
    {"nvidia-ml", "nvml", 3, 2, kInformative},
    {"cublas", "cublas", 15, 7, kInformative},
    {"cublasLt", "cublasLt", 15, 7, kInformative},
    {"cudnn", "cudnn", 3000, 2000, kInformative},
    {"cufft", "cufft", 16, 4, kInformative},
    {"cusparse", "cusparse", 10, 3, kInformative},
    {"cusparseLt", "cusparseLt", 10, 3, kInformative},
    {"cusolver", "cusolver", 9, 3, kInformative},
    {"cusolverMg", "cusolverMg", 9, 3, kInformative},
    {"curand", "curand", 999, 103, kInformative},
    {"cufile", "cuFile", 5001, 5022, kInformative},
    {"nccl", "nccl pnccl", 3, 4, kInformative},
    {"nvrtc", "nvrtc", 11, 3, kInformative},
    {"cupti", "cupti", 15, 1, kInformative},
    {"nvToolsExt", "nvtx", 0, 0, ""},
    {"nvJitLink", "nvJitLink __nvJitLink", 6, 3, kInformative},
    {"nvshmem_host", "nvshmem", -1, 1, kInformative},
    {"nvjpeg", "nvjpeg", 9, 2, kInformative},
    {"cudss", "cudss", 5, 3, kInformative},
};

// Calls f(word) for each word of a list until it returns true.
template <typename F>
bool AnyWord(const char* list, F f) {
  while (*list != 0) {
    const size_t length = std::strcspn(list, " ");
    if (length != 0 && f(std::string(list, length))) return true;
    list += length;
    if (*list == ' ') ++list;
  }
  return false;
}

}  // namespace

const LibraryFamily* FamilyOfLibrary(const std::string& soname) {
  const size_t slash = soname.rfind('/');
  const std::string file = slash == std::string::npos ? soname : soname.substr(slash + 1);
  if (!file.starts_with("lib") || file.find(".so") == std::string::npos) return nullptr;
  for (const LibraryFamily& family : kFamilies) {
    const std::string stem = std::string("lib") + family.name;
    if (!file.starts_with(stem)) continue;
    const char after = file[stem.size()];
    // "-d0da41ae" and ".cda6c0d0" are the marks of copies inside wheels.
    if (after == '.' || (after == '-' && std::strcmp(family.name, "cuda") != 0)) return &family;
  }
  return nullptr;
}

const LibraryFamily* FamilyOfFunction(const std::string& name) {
  const LibraryFamily* best = nullptr;
  size_t longest = 0;
  for (const LibraryFamily& family : kFamilies) {
    AnyWord(family.prefixes, [&](const std::string& prefix) {
      // In the driver "cu" is followed by a capital: cuInit, not cublasCreate or a word like "cut".
      const bool driver = prefix == "cu";
      if (prefix.size() > longest && name.starts_with(prefix) &&
          (!driver || (name.size() > 2 && name[2] >= 'A' && name[2] <= 'Z'))) {
        best = &family;
        longest = prefix.size();
      }
      return false;
    });
  }
  return best;
}

bool IsInformative(const LibraryFamily& family, const std::string& name) {
  const auto has = [&name](const std::string& part) {
    return name.find(part) != std::string::npos;
  };
  if (has("Set") || has("Destroy") || has("Free")) return false;
  return AnyWord(family.reports, has);
}

}  // namespace memreplay::card
