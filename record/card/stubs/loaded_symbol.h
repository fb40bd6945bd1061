// Looks up symbols without libdl: older systems have dlsym in a library of its own.
#pragma once

namespace memreplay::card {

// Returns the address of a function that a loaded library defines, or null. `library` is its file
// name. Linear in the number of the library's symbols.
void* LoadedSymbol(const char* library, const char* name);
// Likewise, of the first library whose file name begins with `beginning`.
void* LoadedSymbolOf(const char* beginning, const char* name);

// Returns the path of the loaded object that holds this address, or "" if none does or if it is the
// executable itself. The text is the loader's own, valid while the object is loaded. Does not
// allocate.
const char* LoadedPath(const void* address);
// Returns its file name likewise.
const char* LoadedName(const void* address);

}  // namespace memreplay::card
