#include "report/words/torch_reason.h"

#include "absl/strings/str_join.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

// Returns "layout of 2.5 to 2.7 (external_annotations, no compile_context)".
std::string LayoutText(const proto::TorchProfileChoice& torch) {
  if (torch.fitting().empty()) return "the file does not identify its release";
  const std::string& oldest = torch.fitting(0);
  const std::string& newest = torch.fitting(torch.fitting_size() - 1);
  return StrCat(
      "layout of ", torch.fitting_size() == 1 ? oldest : StrCat(oldest, " to ", newest),
      torch.evidence().empty() ? "" : StrCat(" (", absl::StrJoin(torch.evidence(), ", "), ")"));
}

}  // namespace

std::string TorchReason(const proto::TorchProfileChoice& torch) {
  using Choice = proto::TorchProfileChoice;
  const std::string assumed = StrCat("; assumed to be ", torch.release());
  const auto rejected = [&torch] {
    return StrCat(": ", torch.rejected(), " would behave differently at event ",
                  torch.rejected_at_event());
  };
  switch (torch.reason()) {
    case Choice::given: return "given";
    case Choice::in_file: return "according to the file";
    case Choice::unnamed: return "not in the file; the default";
    case Choice::no_file: return "the default";
    case Choice::layout:
      return StrCat("inferred: ", LayoutText(torch), torch.fitting_size() == 1 ? "" : assumed);
    case Choice::reproduces:
      return StrCat("inferred: ", LayoutText(torch), assumed,
                    ", the newest release that reproduces it", rejected());
    case Choice::reproduces_most:
      return StrCat("inferred: ", LayoutText(torch), assumed,
                    ", the release that reproduces most of it", rejected());
    case Choice::newest_key:
      return StrCat(
          "inferred: layout of no release; assumed to be the oldest release with all its keys, ",
          torch.release());
    case Choice::unknown_layout: return StrCat("inferred: layout of no release", assumed);
    default: return "";
  }
}

}  // namespace memreplay
