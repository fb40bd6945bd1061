#include "record/card/api/fat_binary.h"

#include <cstdint>

namespace memreplay::card {
namespace {

constexpr uint32_t kWrapperMagic = 0x466243b1;
constexpr uint32_t kFatBinaryMagic = 0xba55ed50;
enum Kind : uint16_t { kPtx = 1, kMachineCode = 2 };

struct Wrapper {
  uint32_t magic, version;
  const unsigned char* data;
};
struct FatBinary {
  uint32_t magic;
  uint16_t version, header_size;
  uint64_t size;  // of all images
};
struct Image {
  uint16_t kind, version;
  uint32_t header_size;
  uint64_t size;
  uint32_t compressed_size, options;
  uint16_t minor, major;
  uint32_t architecture;
};

}  // namespace

int ArchitectureFor(const void* wrapper, int capability) {
  const auto* w = static_cast<const Wrapper*>(wrapper);
  if (w == nullptr || w->magic != kWrapperMagic || w->data == nullptr) return 0;
  const auto* binary = reinterpret_cast<const FatBinary*>(w->data);
  if (binary->magic != kFatBinaryMagic) return 0;
  const unsigned char* at = w->data + binary->header_size;
  const unsigned char* const end = at + binary->size;
  int code = 0, ptx = 0;
  while (at + sizeof(Image) <= end) {
    const auto* image = reinterpret_cast<const Image*>(at);
    const int architecture = static_cast<int>(image->architecture);
    if (architecture <= capability) {
      if (image->kind == kMachineCode && architecture / 10 == capability / 10 &&
          architecture > code) {
        code = architecture;
      }
      if (image->kind == kPtx && architecture > ptx) ptx = architecture;
    }
    const uint64_t size = image->header_size + image->size;
    if (size == 0 || size > static_cast<uint64_t>(end - at)) break;
    at += size;
  }
  return code != 0 ? code : ptx;
}

}  // namespace memreplay::card
