// Writes a stub library (stub.h) as an ELF shared object for x86-64 Linux, without a compiler or
// linker. It has two page-aligned pieces: tables and code, and data.
#pragma once

#include <string>
#include <vector>

#include "record/card/stubs/stub.h"

namespace memreplay::card {

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
