// Words the frames of a stack as a report shows them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "trace/value/trace.h"

namespace memreplay {

// The origin of a frame's code, the user's own first.
enum class FrameOrigin : uint8_t {
  kOwn,        // Python that was not installed
  kLibrary,    // installed Python that is not PyTorch: transformers, einops ...
  kMachinery,  // PyTorch's Python, Python's own library, code that torch.compile wrote
  kNative,     // C++
};
FrameOrigin OriginOf(std::string_view file);

// Returns "/home/me/dir/train.py:12 forward", as it is in the file.
std::string WholeFrame(const Trace& trace, const Frame& frame);

// Returns "dir/train.py:12 forward": of a path the last directory, of a library's path everything
// from its name on, of C++ the function without its arguments.
std::string ShortFrame(const Trace& trace, const Frame& frame);

// Return "aten::bmm" and "BmmBackward0" for the C++ functions in which PyTorch calls an operator or
// a node of the backward pass; "" for any other.
std::string OperatorOf(std::string_view function);
std::string BackwardNodeOf(std::string_view function);

// Returns whether every allocation has such a frame: the recorder, the allocator, the creation of
// an empty tensor, the dispatcher.
bool IsPlumbing(std::string_view function);

}  // namespace memreplay
