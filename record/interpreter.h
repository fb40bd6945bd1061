// Which Python a command starts.
#ifndef MEMREPLAY_RECORD_INTERPRETER_H_
#define MEMREPLAY_RECORD_INTERPRETER_H_

#include <string>

namespace memreplay {

// The folder that this program lies in; "" if the system does not tell.
std::string ProgramFolder();

// The interpreter beside this program, which a virtual environment has, if `package` is installed
// for it ("": in any case); else python3, the first on PATH.
std::string PythonWith(const std::string& package);

}  // namespace memreplay

#endif  // MEMREPLAY_RECORD_INTERPRETER_H_
