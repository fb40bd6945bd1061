// Finds the Python that a command starts.
#pragma once

#include <string>

namespace memreplay {

// Returns the folder of this binary, or "" if the system does not report it.
std::string ProgramFolder();

// Returns the interpreter next to this binary, which a virtual environment has, if `package` is
// installed for it (or `package` is ""); otherwise python3, the first on PATH.
std::string PythonWith(const std::string& package);

}  // namespace memreplay
