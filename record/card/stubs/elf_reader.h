// Reads the libraries that a shared object needs and its undefined symbols.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace memreplay::card {

// An undefined symbol.
struct WantedSymbol {
  std::string name;
  std::string library;  // soname of the library that must define it; empty if it names none
  std::string version;  // empty if any will do
};

// What other libraries must provide to a shared object.
struct SharedObject {
  std::vector<std::string> needed;   // sonames, in order
  std::vector<WantedSymbol> wanted;  // undefined symbols, weak ones included
};

// Reads the dynamic section of a 64-bit little-endian ELF file. Returns false and sets `error` if
// the file cannot be read, is not such a file or contradicts itself; every offset is checked.
// Linear in the number of symbols; the rest of the file is not touched.
bool ReadSharedObject(const char* path, SharedObject* object, std::string* error);

// Reads the same from bytes in memory. `name` is for messages.
bool ReadSharedObject(const char* name, const unsigned char* bytes, size_t size,
                      SharedObject* object, std::string* error);

}  // namespace memreplay::card
