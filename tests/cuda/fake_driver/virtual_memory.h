// What lies at the addresses of the fake driver's GPU: which pages are mapped where, and what the
// kernels wrote there. record/card/model/memory.h decides how many bytes there are and which
// addresses are handed out.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>

namespace memreplay::fake {

// Contents are kept as stretches filled by one call of the fill kernel (cuda/verify_pattern.h), so
// that gigabytes cost nothing. Memory is zero before that.
class Content {
 public:
  // Records that bytes [begin, end) now hold the pattern of `seed`, as if byte 0 were at address
  // `origin`.
  void Fill(uint64_t begin, uint64_t end, uint64_t seed, uint64_t origin);
  // Returns the first of [begin, end) that does not hold it.
  std::optional<uint64_t> FirstOther(uint64_t begin, uint64_t end, uint64_t seed,
                                     uint64_t origin) const;
  uint8_t At(uint64_t offset) const;

 private:
  struct Stretch {
    uint64_t end;
    uint64_t seed;
    uint64_t origin;
  };
  std::map<uint64_t, Stretch> stretches_;  // by beginning, apart
};

struct Mapping {
  uint64_t size;
  uint64_t page;  // its handle; 0: not of cuMemMap
  std::shared_ptr<Content> content;
  bool is_accessible;
};

// All answers are false, or absent, if a GPU would fault or refuse.
class VirtualMemory {
 public:
  bool Map(uint64_t address, const Mapping& mapping);  // false: something is there
  bool SetAccessible(uint64_t address, uint64_t size);
  // Takes out the mapping that is [address, address + size), and returns it.
  std::optional<Mapping> Unmap(uint64_t address, uint64_t size);
  bool HasAny(uint64_t address, uint64_t size) const;

  bool Fill(uint64_t address, uint64_t size, uint64_t seed);
  // Sets *first_bad to the offset of the first byte that is not as filled, or leaves it.
  bool Check(uint64_t address, uint64_t size, uint64_t seed, uint64_t* first_bad) const;
  bool Read(uint64_t address, uint64_t size, uint8_t* to) const;

  uint64_t pages_mapped() const;

 private:
  // Calls visit(mapping, begin, end, address of its byte 0) for each stretch of
  // [address, address + size); false where one is not mapped or not accessible.
  template <typename Visit>
  bool ForEach(uint64_t address, uint64_t size, Visit visit) const;

  std::map<uint64_t, Mapping> mappings_;
};

}  // namespace memreplay::fake
