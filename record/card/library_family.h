// The libraries of NVIDIA's that torch links, by family: "cudart" is libcudart.so.11.0, .12 and
// .13.
#pragma once

#include <string>

namespace memreplay::card {

struct LibraryFamily {
  const char* name;
  const char* prefixes;  // of its functions' names, separated by spaces
  int not_supported;     // what it answers when it cannot do something
  // Beginnings and parts of names, separated by spaces. A function of the family that is not
  // modelled needs to do nothing if it matches neither: it computes or is told something.
  const char* tells;
};

// Null if the file name of a library is none of NVIDIA's. "libcudart-d0da41ae.so.11.0", as some
// wheels call their copies, is cudart too.
const LibraryFamily* FamilyOfLibrary(const std::string& soname);
// The family whose function this is by its name, or null.
const LibraryFamily* FamilyOfFunction(const std::string& name);

// Whether a function that is not modelled tells its caller something: a handle, a size, a text.
// All others compute or change a setting, and a caller cannot see that they did nothing.
bool TellsSomething(const LibraryFamily& family, const std::string& name);

}  // namespace memreplay::card
