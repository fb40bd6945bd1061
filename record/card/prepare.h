// Writes the stub libraries that one installation of torch needs.
#pragma once

#include <string>

namespace memreplay::card {

// Searches the shared objects below `folders` for what they need from NVIDIA's libraries, and
// writes into `out` one stub library for each soname, which also has what NVIDIA's headers declare,
// a link to this core, and `libraries`, their paths in the order to load them. `folders` are
// separated by ':'. The first is torch's own, whose version.py and METADATA state versions; another
// that cannot be read is skipped. Files are replaced as a whole, so two processes may call this at
// once. Returns false and sets `error` if a folder cannot be read or written or torch is no CUDA
// build.
bool Prepare(const std::string& folders, const std::string& out, std::string* error);

}  // namespace memreplay::card
