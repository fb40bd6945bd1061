#include "report/words/memory_use.h"

#include <string_view>

#include "absl/strings/ascii.h"
#include "absl/strings/str_replace.h"
#include "trace/value/strings.h"

namespace memreplay {

std::vector<MemoryPart> PartsOf(const proto::MemoryUse& use) {
  const struct {
    int64_t bytes;
    std::string_view what;
  } kParts[] = {
      {use.live_requested_bytes(), "live: asked for by tensors"},
      {use.internal_bytes(), "internal: blocks beyond what was asked for"},
      {use.pending_bytes(), "pending: freed, other streams may still use it"},
      {use.shared_free_bytes(), "free, in segments that live blocks share"},
      {use.cached_segment_bytes(), "free, whole segments in the cache"},
      {use.device_free_bytes(), "free, per the driver"},
      {use.outside_bytes(), "outside PyTorch: context, libraries, other processes"},
  };
  std::vector<MemoryPart> parts;
  for (const auto& part : kParts) {
    if (part.bytes != 0) parts.push_back({part.bytes, std::string(part.what)});
  }
  if (use.capacity_bytes() > 0) {
    parts.push_back({use.capacity_bytes(), StrCat("in all (", use.capacity_source(), ")")});
  }
  return parts;
}

std::string_view ResultOf(bool survives, bool served) {
  return survives ? "survives" : served ? "served here" : "runs out";
}

std::string VerdictName(proto::Verdict verdict) {
  return absl::AsciiStrToUpper(absl::StrReplaceAll(proto::Verdict_Name(verdict), {{"_", " "}}));
}

}  // namespace memreplay
