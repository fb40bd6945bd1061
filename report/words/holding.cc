#include "report/words/holding.h"

#include <string_view>
#include <utility>

#include "report/words/sizes.h"
#include "report/words/text.h"
#include "trace/value/bounded.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

using Holders = google::protobuf::RepeatedPtrField<proto::Holding::Holder>;

// Appends "1.20 GiB by list `losses` in main() (train.py:12), 37 tensors", and what to do.
void AppendHolders(const Holders& holders, std::string* text) {
  std::string_view separator, remedy;
  for (const proto::Holding::Holder& holder : holders) {
    StrAppend(text, std::exchange(separator, "; "), FormatSize(holder.bytes()), " by ",
              CleanText(holder.path()));
    if (holder.tensors() > 0) StrAppend(text, ", ", FormatCount(holder.tensors(), "tensor"));
    if (holder.nodes() > 0)
      StrAppend(text, ", ", FormatCount(holder.nodes(), "node"), " of graphs");
    if (remedy.empty()) remedy = holder.remedy();
  }
  StrAppend(text, ".", remedy.empty() ? "" : StrCat(" To free it: ", CleanText(remedy), "."), "\n");
}

}  // namespace

std::string HoldingText(const proto::Holding& holding, int64_t spare) {
  std::string text;
  const proto::Holding::Growth& growth = holding.growth();
  if (growth.bytes() > 0) {
    StrAppend(&text, "Grows ", FormatSize(growth.bytes()), " with each ", CleanText(growth.step()));
    if (spare >= 0) {
      StrAppend(&text, ": full after ", spare > 0 ? "about " : "",
                FormatCount(BoundedSum(growth.steps(), spare / growth.bytes())));
    }
    StrAppend(&text, ". Held: ");
    if (growth.holders().empty()) StrAppend(&text, "nothing in Python holds it, so C++ does");
    AppendHolders(growth.holders(), &text);
  }
  if (!holding.held().empty()) {
    StrAppend(&text, "Held when memory ran out: ");
    AppendHolders(holding.held(), &text);
  }
  if (!holding.request().empty()) {
    StrAppend(&text, "The refused request is ", CleanText(holding.request()), ".\n");
  }
  if (!holding.kept().empty()) {
    StrAppend(&text, "Kept beyond a step: ");
    AppendHolders(holding.kept(), &text);
  }
  for (const std::string& sentence : holding.inactive()) {
    StrAppend(&text, CleanText(sentence), ".\n");
  }
  return text;
}

}  // namespace memreplay
