// NVIDIA's libraries that torch links, by family: "cudart" is libcudart.so.11.0, .12 and .13.
#pragma once

#include <string>

namespace memreplay::card {

// All versions of one of NVIDIA's libraries.
struct LibraryFamily {
  const char* name;
  const char* prefixes;  // of its functions' names, separated by spaces
  int not_supported;     // what it returns if it does not support something
  int invalid_value;     // and for an argument that it does not accept, such as a null pointer
  // Parts of names, separated by spaces. A function of the family that is not modelled and matches
  // none has nothing to do, because it computes or sets something.
  const char* reports;
};

// Returns null if a library's file name is none of NVIDIA's. "libcudart-d0da41ae.so.11.0", as some
// wheels call their copies, is cudart too.
const LibraryFamily* FamilyOfLibrary(const std::string& soname);
// Returns the family whose function has this name, or null.
const LibraryFamily* FamilyOfFunction(const std::string& name);

// Returns whether a function that is not modelled reports something to its caller: a handle, a
// size, a text. All others compute or change a setting, and a caller cannot see that they did
// nothing.
bool IsInformative(const LibraryFamily& family, const std::string& name);

}  // namespace memreplay::card
