#include "report/words/names.h"

#include <string_view>

#include "absl/strings/ascii.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

struct CategoryRow {
  std::string_view name, noun, heading;
  std::string_view column;  // that it shares; neighbours have the same
  std::string_view tag;     // of a written schedule, if it is another
};

constexpr CategoryRow kCategoryRows[] = {
    {"parameter", "parameters", "params", "params", ""},
    {"buffer", "buffers", "buffers", "params", ""},
    {"gradient", "gradients", "grads", "grads", ""},
    {"optimizer_state", "optimizer state", "optim", "optim", "optimizer"},
    {"copy", "copies of weights in another type", "copies", "copies", "weight_cast"},
    {"activation", "activations", "activ", "activ", ""},
    {"logits", "logits and loss", "logits", "logits", ""},
    {"temporary", "temporaries", "temp", "temp", ""},
    {"workspace", "workspaces", "work", "work", ""},
    {"input", "inputs", "inputs", "other", ""},
    {"cache", "KV cache", "caches", "other", "kv_cache"},
    {"communication", "communication", "comm", "other", ""},
    {"", "everything else", "other", "other", ""},  // tags of the user's own
    {"unknown", "unknown", "unknown", "unknown", ""},
};

const CategoryRow& RowOf(std::string_view category) {
  const CategoryRow* other = nullptr;
  for (const CategoryRow& row : kCategoryRows) {
    if (row.name.empty()) other = &row;
    if (row.name == category || (!row.tag.empty() && row.tag == category)) return row;
  }
  return *other;
}

}  // namespace

std::string_view CategoryNoun(std::string_view category) {
  const CategoryRow& row = RowOf(category);
  return row.name.empty() ? category : row.noun;
}

std::vector<CategoryColumn> CategoryColumns(const std::vector<const BytesByTag*>& rows,
                                            bool with_unknown) {
  std::vector<CategoryColumn> columns;
  std::string_view column;
  for (const CategoryRow& row : kCategoryRows) {
    if (row.name == "unknown" && !with_unknown) continue;
    if (row.column != column) {
      columns.push_back({std::string(row.column), "", std::vector<int64_t>(rows.size())});
    }
    column = row.column;
    CategoryColumn& to = columns.back();
    bool is_present = false;
    for (size_t i = 0; i < rows.size(); ++i) {
      for (const auto& [category, bytes] : *rows[i]) {
        const std::string_view known = RowOf(category).name;
        if (known != row.name && (known != "unknown" || with_unknown || !row.name.empty()))
          continue;
        to.bytes[i] += bytes;
        is_present |= bytes != 0;
      }
    }
    if (!is_present) continue;
    to.heading = to.sentence.empty() ? row.heading : row.column;
    StrAppend(&to.sentence, to.sentence.empty() ? "" : " and ", row.noun);
  }
  return columns;
}

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
