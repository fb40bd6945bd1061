#include "report/words/memory_use.h"

#include <string_view>

#include "absl/strings/ascii.h"
#include "trace/value/strings.h"

namespace memreplay {

std::vector<MemoryPart> PartsOf(const proto::MemoryUse& use) {
  const struct {
    int64_t bytes;
    std::string_view what;
  } kParts[] = {
      {use.live_requested_bytes(), "live: requested by tensors"},
      {use.internal_bytes(), "internal: block sizes rounded up beyond the request"},
      {use.pending_bytes(), "pending: freed, but other streams may still use it"},
      {use.shared_free_bytes(), "free, in segments that also hold live blocks"},
      {use.cached_segment_bytes(), "free, as whole cached segments"},
      {use.device_free_bytes(), "free on the device, according to the driver"},
      {use.outside_bytes(), "outside PyTorch: the GPU's context, libraries, other processes"},
  };
  std::vector<MemoryPart> parts;
  for (const auto& part : kParts) {
    if (part.bytes != 0) parts.push_back({part.bytes, std::string(part.what)});
  }
  if (use.capacity_bytes() > 0) {
    parts.push_back({use.capacity_bytes(), StrCat("total (", use.capacity_source(), ")")});
  }
  return parts;
}

std::string_view ResultOf(bool survives, bool served) {
  return survives ? "survives" : served ? "served here" : "runs out";
}

std::string_view VerdictPhrase(proto::Verdict verdict) {
  switch (verdict) {
    case proto::Verdict::none: return "no shortage";
    case proto::Verdict::true_shortage: return "memory shortage";
    case proto::Verdict::fragmentation: return "fragmentation";
    case proto::Verdict::leak: return "leak";
    case proto::Verdict::pending_free: return "pending free";
    case proto::Verdict::too_large: return "too large for the device";
    default: break;  // a value that only a newer schema knows
  }
  return "unknown verdict";
}

std::string VerdictName(proto::Verdict verdict) {
  return absl::AsciiStrToUpper(ToAbsl(VerdictPhrase(verdict)));
}

std::string_view StepSourceName(proto::StepSummary::Source source) {
  switch (source) {
    case proto::StepSummary::marks: return "marks";
    case proto::StepSummary::annotations: return "annotations";
    case proto::StepSummary::period: return "repetition";
    default: break;  // none was found
  }
  return "none";
}

std::string_view SeverityName(proto::Diagnostic::Severity severity) {
  switch (severity) {
    case proto::Diagnostic::info: return "info";
    case proto::Diagnostic::data_loss: return "incomplete";
    default: break;
  }
  return "error";
}

}  // namespace memreplay
