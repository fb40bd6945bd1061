// dlsym without libdl: older systems have it in a library of its own.
#pragma once

namespace memreplay::card {

// The address of a function that a loaded library defines, or null. `library` is its file name.
// Linear in the number of the library's symbols.
void* LoadedSymbol(const char* library, const char* name);

// The path of the loaded object that holds this address, or "": of none, or of the program itself.
// It is the loader's own text, valid while the object is loaded. Allocates nothing.
const char* LoadedPath(const void* address);

}  // namespace memreplay::card
