// The data that a stub library and the core share, and the writer of stub libraries. A stub library
// carries the name of one of NVIDIA's libraries and exports what the user's torch needs from it.
// Each export jumps through its entry, and the core fills the entries when the library is loaded.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace memreplay::card {

// An entry in the stub's writable pages. The code of an export puts its address into r11 (x16 on
// aarch64) and jumps to its function, so that one function of the core can stand for many names:
// the register says which.
struct StubEntry {
  void* function;  // 0 in the file
  uint64_t name;   // offset of the name from the table's start
};

// Versions that the wheel states, as the libraries report them; 0 if it states none.
struct LibraryVersions {
  int32_t cuda = 0;   // 12040 for 12.4
  int32_t cudnn = 0;  // 90100 for 9.1.0, 8907 for 8.9.7
  int32_t nccl = 0;   // 22105 for 2.21.5
  int32_t padding = 0;
};

// The table of a stub library, which kAttachSymbol receives.
struct StubTable {
  uint64_t entries;  // how many StubEntry follow
  uint64_t library;  // offset of the library's soname from the table's start
  uint64_t code;     // offset of the first export's code; the others follow, 16 bytes each
  LibraryVersions versions;
  // StubEntry[entries]
};

inline constexpr uint64_t kThunkSize = 16;

// The name of the core's function that a stub calls when it is loaded.
inline constexpr char kAttachSymbol[] = "memreplay_card_attach";

// Writes a stub library (stub.h) as an ELF shared object for x86-64 Linux, without a compiler or
// linker. It has two page-aligned pieces: tables and code, and data.

// A function that a stub library exports.
struct StubSymbol {
  std::string name;
  std::string version;  // empty: without a version
};

// What is written into a stub library.
struct StubLibrary {
  std::string soname;
  std::string core;  // soname of the library that exports kAttachSymbol
  LibraryVersions versions;
  std::vector<StubSymbol> symbols;  // any order, each name once per version
};

// Returns the bytes of the file. Linear in the number of symbols.
std::string WriteStub(const StubLibrary& library);

}  // namespace memreplay::card
