#include "report/words/frame_text.h"

#include <algorithm>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "report/words/text.h"
#include "trace/value/strings.h"
#include "trace/value/utf8.h"

namespace memreplay {
namespace {

constexpr size_t kMaxNameLength = 60;
constexpr size_t kLibraryDirectories = 4;
constexpr size_t kOwnDirectories = 1;

bool IsPython(std::string_view file) {
  return file.ends_with(".py") || file.starts_with("<ipython-input") || file == "<stdin>";
}

bool IsSeparator(char c) { return c == '/' || c == '\\'; }

std::vector<std::string_view> PartsOf(std::string_view path) {
  std::vector<std::string_view> parts;
  size_t begin = 0;
  for (size_t i = 0; i <= path.size(); ++i) {
    if (i < path.size() && !IsSeparator(path[i])) continue;
    if (i > begin) parts.push_back(path.substr(begin, i - begin));
    begin = i + 1;
  }
  return parts;
}

// Returns the position of the installed package's name; parts.size() if nothing was installed.
size_t PackageAt(const std::vector<std::string_view>& parts) {
  for (size_t i = parts.size(); i-- > 0;) {
    if (parts[i] == "site-packages" || parts[i] == "dist-packages") {
      return std::min(i + 1, parts.size());
    }
  }
  return parts.size();
}

bool IsOfPython(std::string_view part) {
  return absl::StrContains(absl::AsciiStrToLower(ToAbsl(part)), "python") &&
         part.find_first_of("0123456789") != part.npos;
}

// Returns whether the path is in Python's own library: ".../lib/python3.10/copy.py",
// "...\\Python310\\Lib\\copy.py".
bool IsStandardLibrary(const std::vector<std::string_view>& parts) {
  for (size_t i = 0; i + 1 < parts.size(); ++i) {
    if (!absl::EqualsIgnoreCase(ToAbsl(parts[i]), "lib")) continue;
    if (IsOfPython(parts[i + 1]) || (i >= 1 && IsOfPython(parts[i - 1]))) return true;
  }
  return false;
}

std::string ShortPath(std::string_view path) {
  const std::vector<std::string_view> parts = PartsOf(path);
  if (parts.empty()) return std::string(path);
  for (const std::string_view part : parts) {  // the name of the file is a hash
    if (part.starts_with("torchinductor_")) return StrCat("compiled ", CutText(parts.back(), 8));
  }
  const auto from = [&](size_t part) {
    return path.substr(static_cast<size_t>(parts[part].data() - path.data()));
  };
  const size_t package = PackageAt(parts);
  if (package == parts.size()) {
    return std::string(parts.size() > kOwnDirectories + 1 ? from(parts.size() - kOwnDirectories - 1)
                                                          : path);
  }
  if (parts.size() - package <= kLibraryDirectories + 1) return std::string(from(package));
  return StrCat(parts[package], "/.../", from(parts.size() - kLibraryDirectories));
}

// Returns a function's name without arguments, result and template arguments.
std::string ShortFunction(std::string_view name) {
  std::string text;
  int depth = 0;
  constexpr std::string_view kAnonymous = "(anonymous namespace)::";
  for (size_t i = 0; i < name.size(); ++i) {
    if (name.substr(i).starts_with(kAnonymous)) {
      i += kAnonymous.size() - 1;
      continue;
    }
    const bool is_operator = absl::EndsWith(text, "operator");
    if (name[i] == '(' && depth == 0 && !is_operator) break;
    if (name[i] == '<' && !is_operator) ++depth;
    if (depth == 0) text += name[i];
    if (name[i] == '>' && depth > 0) --depth;
  }
  if (depth != 0 || text.empty()) text = name;  // not C++ after all
  const size_t space = text.rfind(' ');
  if (space != text.npos && space + 1 < text.size()) text.erase(0, space + 1);
  return text;
}

// Returns the text between `before` and `after`; "" if it lacks them.
std::string_view Between(std::string_view text, std::string_view before, std::string_view after) {
  const size_t begin = text.find(before);
  if (begin == text.npos) return "";
  const std::string_view rest = text.substr(begin + before.size());
  const size_t end = rest.find(after);
  return end == rest.npos ? "" : rest.substr(0, end);
}

std::string Cut(std::string_view text) {
  return text.size() > kMaxNameLength ? StrCat(CutText(text, kMaxNameLength), "...")
                                      : std::string(text);
}

std::string Joined(std::string_view file, uint32_t line, std::string_view name) {
  std::string text(file);
  if (line != 0) StrAppend(&text, ":", line);
  if (!name.empty()) StrAppend(&text, text.empty() ? "" : " ", name);
  return CleanText(text);
}

// Returns the common name of some functions: the operator of "at::meta::structured_mm::meta", where
// structured_addmm is what linear layers end in, and the workspace that comes with a cuBLAS handle;
// "" for others.
std::string KnownName(std::string_view function) {
  if (function.find("getCurrentCUDABlasHandle") != function.npos ||
      function.find("getCUDABlasLtWorkspace") != function.npos) {
    return "cuBLAS workspace";
  }
  std::string_view name = Between(function, "structured_", "::");
  name = name.substr(0, name.find("_out_cuda"));
  if (name.empty() || name.find("ufunc_") != name.npos) return "";
  return name == "addmm" ? "aten::linear" : CleanText(StrCat("aten::", name));
}

}  // namespace

FrameOrigin OriginOf(std::string_view file) {
  if (!IsPython(file)) return FrameOrigin::kNative;
  const std::vector<std::string_view> parts = PartsOf(file);
  const size_t package = PackageAt(parts);
  const auto is_of_torch = [](std::string_view part) {
    return part == "torch" || part == "triton" || part == "torchgen" || part == "functorch";
  };
  if (package < parts.size()) {
    return is_of_torch(parts[package]) ? FrameOrigin::kMachinery : FrameOrigin::kLibrary;
  }
  // A checkout of PyTorch counts too: no directory of the user has this name and contains these.
  for (size_t i = 0; i + 1 < parts.size(); ++i) {
    if (parts[i] == "torch" || parts[i].starts_with("torchinductor_")) {
      return FrameOrigin::kMachinery;
    }
  }
  return IsStandardLibrary(parts) ? FrameOrigin::kMachinery : FrameOrigin::kOwn;
}

std::string WholeFrame(const Trace& trace, const Frame& frame) {
  std::string_view file = trace.strings[frame.filename];
  if (file == "??") file = {};
  return Joined(file, frame.line, trace.strings[frame.name]);
}

std::string ShortFrame(const Trace& trace, const Frame& frame) {
  const std::string_view file = trace.strings[frame.filename];
  const std::string_view name = trace.strings[frame.name];
  if (trace.is_program) return Joined(ShortPath(file), frame.line, name);
  if (OriginOf(file) != FrameOrigin::kNative) return Joined(ShortPath(file), frame.line, Cut(name));
  if (std::string known = KnownName(name); !known.empty()) return known;
  if (frame.line == 0 && !name.empty()) return CleanText(Cut(ShortFunction(name)));
  return Joined(file == "??" ? "" : ShortPath(file), frame.line, Cut(ShortFunction(name)));
}

std::string OperatorOf(std::string_view function) {
  const std::string_view name = Between(function, "at::_ops::", "::call");
  return name.empty() ? "" : StrCat("aten::", name);
}

std::string BackwardNodeOf(std::string_view function) {
  std::string_view name = Between(function, "torch::autograd::generated::", "::apply(");
  if (name.empty() && function.find("torch::autograd::AccumulateGrad::apply(") != function.npos) {
    name = "AccumulateGrad";
  }
  return std::string(name);
}

bool IsPlumbing(std::string_view function) {
  for (const std::string_view part :
       {"torch::unwind::", "CapturedTraceback", "gather_with_cpp", "CUDACachingAllocator",
        "at::detail::", "c10::StorageImpl", "at::(anonymous namespace)::create_out",
        "c10::impl::wrap_kernel", "wrapper_CUDA", "::redispatch(",
        "torch::autograd::VariableType"}) {
    if (function.find(part) != std::string_view::npos) return true;
  }
  return function.empty();
}

}  // namespace memreplay
