// Writes a stub library (../stub.h) as an ELF shared object for x86-64 Linux, without a compiler or
// linker: one page-aligned piece of tables and code, one of data.
#pragma once

#include <string>
#include <vector>

#include "record/card/stub.h"

namespace memreplay::card {

struct StubSymbol {
  std::string name;
  std::string version;  // empty: without a version
};

struct StubLibrary {
  std::string soname;
  std::string core;  // soname of the library that exports kAttachSymbol
  LibraryVersions versions;
  std::vector<StubSymbol> symbols;  // any order, each name once per version
};

// The bytes of the file. Linear in the number of symbols.
std::string WriteStub(const StubLibrary& library);

}  // namespace memreplay::card
