// Frames of a stack as a report shows them.
#ifndef MEMREPLAY_REPORT_WORDS_FRAME_TEXT_H_
#define MEMREPLAY_REPORT_WORDS_FRAME_TEXT_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "trace/value/trace.h"

namespace memreplay {

// Whose code a frame is in, the reader's own first.
enum class FrameOrigin : uint8_t {
  kOwn,        // Python that was not installed
  kLibrary,    // installed Python that is not PyTorch: transformers, einops ...
  kMachinery,  // PyTorch's Python, Python's own library, what torch.compile wrote
  kNative,     // C++
};
FrameOrigin OriginOf(std::string_view file);

// "/home/me/dir/train.py:12 forward", as it is in the file.
std::string WholeFrame(const Trace& trace, const Frame& frame);

// "dir/train.py:12 forward": of a path the last directory, of a library's those from its
// name on, of C++ the function without its arguments.
std::string ShortFrame(const Trace& trace, const Frame& frame);

// "aten::bmm", "BmmBackward0", of the C++ functions in which PyTorch calls an operator
// and a node of the backward pass; "" of any other.
std::string OperatorOf(std::string_view function);
std::string BackwardNodeOf(std::string_view function);

// In what every allocation has: the recorder, the allocator, the making of an empty tensor, the
// dispatcher.
bool IsPlumbing(std::string_view function);

}  // namespace memreplay

#endif  // MEMREPLAY_REPORT_WORDS_FRAME_TEXT_H_
