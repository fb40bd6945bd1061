#include "report/words/holding.h"

#include <string_view>
#include <utility>

#include "absl/strings/ascii.h"
#include "report/words/sizes.h"
#include "report/words/text.h"
#include "trace/value/bounded.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

using Holders = google::protobuf::RepeatedPtrField<proto::Holding::Holder>;

// Adds "Held: 1.20 GiB by list `losses` in main() (train.py:12), 37 tensors", and what to do.
void AddHolders(std::string_view when, const Holders& holders, proto::Diagnosis* text) {
  std::string_view separator;
  StrAppend(text->mutable_why(), when, ": ");
  for (const proto::Holding::Holder& holder : holders) {
    StrAppend(text->mutable_why(), std::exchange(separator, "; "), FormatSize(holder.bytes()),
              " by ", CleanText(holder.path()));
    if (holder.tensors() > 0) {
      StrAppend(text->mutable_why(), ", ", FormatCount(holder.tensors(), "tensor"));
    }
    if (holder.nodes() > 0) {
      StrAppend(text->mutable_why(), ", ", FormatCount(holder.nodes(), "node"), " of graphs");
    }
    if (text->do_().empty() && !holder.remedy().empty()) {
      text->set_do_(StrCat("To free it: ", CleanText(holder.remedy()), "."));
    }
  }
  text->mutable_why()->append(". ");
}

}  // namespace

proto::Diagnosis HoldingWords(const proto::Holding& holding, int64_t spare) {
  proto::Diagnosis text;
  const proto::Holding::Growth& growth = holding.growth();
  if (growth.bytes() > 0) {
    text.set_what(
        StrCat("Grows ", FormatSize(growth.bytes()), " with each ", CleanText(growth.step())));
    if (spare >= 0) {
      StrAppend(text.mutable_what(), ": full after ", spare > 0 ? "about " : "",
                FormatCount(BoundedSum(growth.steps(), spare / growth.bytes())));
    }
    text.mutable_what()->append(".");
    if (!growth.holders().empty()) AddHolders("Held", growth.holders(), &text);
  }
  if (!holding.held().empty()) AddHolders("Held when memory ran out", holding.held(), &text);
  if (!holding.request().empty()) {
    StrAppend(text.mutable_why(), "The refused request is ", CleanText(holding.request()), ". ");
    if (text.do_().empty() && !holding.instead().empty()) {
      text.set_do_(StrCat("Instead of that request: ", CleanText(holding.instead()), "."));
    }
  }
  if (!holding.kept().empty()) AddHolders("Kept beyond a step", holding.kept(), &text);
  for (const std::string& sentence : holding.inactive()) {
    StrAppend(text.do_().empty() ? text.mutable_do_() : text.mutable_why(), CleanText(sentence),
              ". ");
  }
  for (std::string* part : {text.mutable_what(), text.mutable_why(), text.mutable_do_()}) {
    absl::StripTrailingAsciiWhitespace(part);
  }
  return text;
}

std::string DiagnosisText(const proto::Diagnosis& diagnosis) {
  std::string text = diagnosis.what();
  for (const std::string* part : {&diagnosis.why(), &diagnosis.do_()}) {
    StrAppend(&text, text.empty() || part->empty() ? "" : " ", *part);
  }
  return text;
}

}  // namespace memreplay
