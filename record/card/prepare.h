// Writes the stub libraries that one installation of torch wants.
#pragma once

#include <string>

namespace memreplay::card {

// Looks through the shared objects below `folders` (separated by ':'; the first is torch's own,
// whose version.py and METADATA state versions; another that cannot be read is left out) for what
// they want of NVIDIA's libraries, and writes into `out`: one stub library for each soname, a link
// to this core, and `libraries`, their paths in the order to load. Files are replaced as a whole,
// so two processes may do it at once. False, with `error`, if a folder cannot be read or written or
// torch is no CUDA build.
bool Prepare(const std::string& folders, const std::string& out, std::string* error);

}  // namespace memreplay::card
