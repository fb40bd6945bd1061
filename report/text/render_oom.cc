#include "report/text/render_oom.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "report/text/render_held.h"
#include "report/words/answer.h"
#include "report/words/lines.h"
#include "report/words/memory_use.h"
#include "report/words/sizes.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

constexpr int kMaxFreeLists = 8;
constexpr int kMaxPinnedShown = 5;
constexpr int kMaxLiveShown = 5;
constexpr int kMaxCallers = 3;

std::string Where(const google::protobuf::RepeatedField<int64_t>& pool, int64_t stream) {
  return StrCat(PoolName(pool), ", ", StreamName(stream));
}

void RenderUse(const proto::OutOfMemory& oom, std::string* out) {
  const proto::MemoryUse& use = oom.use();
  StrAppend(out, "\n  where the memory is\n");
  for (const MemoryPart& part : PartsOf(use)) SizeLine(out, part.bytes, part.what);
  if (use.private_pool_bytes() > 0) {
    AddRow(out, "private pools",
           StrCat(FormatSize(use.private_pool_bytes()), " of it, ",
                  FormatSize(use.private_pool_free_bytes()), " of that free"));
  }
  if (use.pending_before_bytes() > 0) {
    AddRow(out, "pending before",
           StrCat(FormatSize(use.pending_before_bytes()),
                  " were waiting for other streams when the request arrived"));
  }
}

// Returns the cheapest changes of the script that would have served the request, and what to write.
// Whether there is memory to spare is unknown if what would have followed is.
std::string ServingAdvice(const proto::Advice& advice) {
  std::string out;
  for (const int32_t index : advice.serving_rows()) {
    const proto::Advice::Row& row = advice.rows(index);
    if (out.empty()) out = "\n  would have served it, by editing the recording\n";
    StrAppend(&out, "  ", row.change(), ": ", advice.is_lower_bound() ? "at least " : "",
              FormatSize(row.peak_reserved_bytes()), " reserved",
              row.fits() ? StrCat(", ", FormatSize(row.spare_bytes()), " to spare") : "",
              "; cost: ", row.cost(), "; to write:\n");
    for (const std::string& line : row.lines()) StrAppend(&out, "    ", line, "\n");
  }
  return out;
}

std::string Share(const proto::HeldBytes& held) {
  return StrCat(" in ", FormatCount(held.allocations(), "allocation"));
}

// Appends the categories of a recording; `bytes` are as requested.
void RenderCategoryBytes(const proto::Categories& categories, std::string* out) {
  std::vector<std::pair<int64_t, std::string>> rows;
  for (const auto& [category, bytes] : categories.bytes_by_category()) {  // in any order
    rows.emplace_back(-bytes, category);
  }
  std::sort(rows.begin(), rows.end());
  if (!rows.empty()) StrAppend(out, "\n  live by category, as requested\n");
  for (const auto& [bytes, category] : rows) SizeLine(out, -bytes, category);
}

void RenderLive(const proto::OutOfMemory& oom, std::string* out) {
  if (oom.categories_size() > 0) StrAppend(out, "\n  live by category\n");
  for (const proto::HeldBytes& held : oom.categories()) {
    SizeLine(out, held.bytes(), StrCat(held.category(), Share(held)));
  }
  if (oom.live_size() > 0) StrAppend(out, "\n  live by stack\n");
  int shown = 0;
  for (const proto::HeldBytes& held : oom.live()) {
    if (shown++ == kMaxLiveShown) break;
    SizeLine(out, held.bytes(), StrCat(held.stack().summary(), Share(held)));
  }
  if (oom.live_stacks() > kMaxLiveShown) {
    StrAppend(out, "              and ",
              FormatCount(oom.live_stacks() - kMaxLiveShown, "more stack"), "\n");
  }
}

void RenderFree(const proto::OutOfMemory& oom, std::string* out) {
  if (oom.largest_free_size() == 0) return;
  StrAppend(out, "\n  largest free block of each pool and stream\n");
  int shown = 0;
  for (const auto& free : oom.largest_free()) {
    if (shown++ == kMaxFreeLists) {
      StrAppend(out, "              and ", oom.largest_free_size() - kMaxFreeLists, " more\n");
      break;
    }
    SizeLine(out, free.bytes(),
             StrCat(Where(free.segment_pool_id(), free.stream()), ", ",
                    SegmentTypeName(free.segment_type()), "; ", FormatSize(free.free_bytes()),
                    " free in ", FormatCount(free.free_blocks(), "block")));
  }
}

std::string Age(const proto::PinnedSegment::Pin& pin) {
  if (pin.age() < 0) return "allocated before the recording began";
  return StrCat(FormatCount(pin.age(), "event"), " old (event ", FormatCount(pin.event()), ")");
}

void RenderPinned(const proto::OutOfMemory& oom, std::string* out) {
  if (oom.pinned_segments() == 0) return;
  StrAppend(out, "\n  ", FormatSize(oom.pinned_free_bytes()), " is stuck in ",
            FormatCount(oom.pinned_segments(), "segment"), " because live tensors sit in ",
            oom.pinned_segments() == 1 ? "it" : "them", "\n");
  int shown = 0;
  for (const proto::PinnedSegment& segment : oom.pinned()) {
    if (shown++ == kMaxPinnedShown) break;
    SizeLine(out, segment.free_bytes(),
             StrCat("free of ", FormatSize(segment.total_size()), " at ",
                    absl::StrFormat("0x%x", segment.address()), ", pinned by ",
                    FormatSize(segment.live_bytes()), " in ",
                    FormatCount(segment.live_blocks(), "block")));
    if (segment.pins_size() > 0) {
      const auto& pin = segment.pins(0);
      StrAppend(out, "              ", segment.live_blocks() > 1 ? "the largest: " : "",
                FormatSize(pin.bytes()), " by ", pin.stack().summary(), ", ", Age(pin), "\n");
    }
  }
}

// Returns the error bar: what addresses in the other order change.
std::string OtherOrder(const proto::Counterfactual& answer) {
  std::vector<std::string> changed;
  const std::string_view other =
      ResultOf(answer.other_order_survives(), answer.other_order_served());
  if (other != ResultOf(answer.survives(), answer.served())) changed.emplace_back(other);
  if (answer.kind() == proto::Counterfactual::memory && answer.other_order_survives() &&
      answer.other_order_amount_bytes() != answer.amount_bytes()) {
    changed.push_back(StrCat(FormatSize(answer.other_order_amount_bytes()), " more memory"));
  }
  if (changed.empty()) {
    return OtherOrderText(answer.peak_reserved_bytes(), answer.other_order_peak_reserved_bytes());
  }
  return StrCat("; with addresses in the opposite order: ", absl::StrJoin(changed, ", "));
}

void RenderCounterfactuals(const proto::OutOfMemory& oom, Text* out) {
  if (oom.counterfactuals_size() == 0) return;
  StrAppend(&out->text, "\n  what would have helped (each change was simulated)\n");
  for (const proto::Counterfactual& answer : oom.counterfactuals()) {
    const std::string_view result = ResultOf(answer.survives(), answer.served());
    out->Add({"",
              absl::StrFormat("%-11s  %s; peak reserved %s%s", ToAbsl(result), answer.change(),
                              FormatSize(answer.peak_reserved_bytes()), OtherOrder(answer)),
              answer.survives() ? Tone::kGood
              : answer.served() ? Tone::kPlain
                                : Tone::kBad});
  }
}

void RenderSteps(const proto::OutOfMemory& oom, std::string* out) {
  if (oom.steps().steps() == 0) return;
  const std::string_view step = oom.steps().may_be_layers() ? "repeat" : "step";
  AddRow(out, StrCat(step, "s"),
         StrCat(FormatCount(oom.steps().steps()), " before it, with ",
                FormatCount(oom.steps().allocations_per_step(), "allocation"), " each, found by ",
                StepSourceName(oom.steps().source()), "; live memory grows by ",
                FormatSize(oom.steps().growth_bytes_per_step()), " per ", step,
                oom.steps().may_be_layers() ? "; these may be the layers of one pass" : ""));
  if (oom.has_leak()) {
    AddRow(out, "left behind",
           StrCat(FormatSize(oom.leak().left_bytes()), " in ",
                  FormatCount(oom.leak().left_allocations(), "allocation"), " by ",
                  oom.leak().stack().summary()));
  }
}

// Appends the script's own frames, from the one that the summary begins with outwards.
void RenderCallers(const proto::Stack& stack, std::string* out) {
  for (int i = 0; i < std::min(stack.own_size(), kMaxCallers); ++i) {
    AddRow(out, "", StrCat(i == 0 ? "at " : "called from ", stack.frames(stack.own(i))));
  }
  if (const int folded = stack.own_size() - kMaxCallers; folded > 0) {
    AddRow(out, "", StrCat("called from ", FormatCount(folded, "more frame")));
  }
}

}  // namespace

void RenderOom(const proto::DeviceReport& device, Text* answer) {
  const proto::OutOfMemory& oom = device.oom();
  std::string* out = &answer->text;
  std::string asked = FormatSizeExactly(oom.requested_bytes());
  if (oom.segment_bytes() != oom.requested_bytes()) {
    StrAppend(&asked, ", for which PyTorch asks the driver for ", FormatSize(oom.segment_bytes()));
  }
  AddRow(out, "requested", asked);
  AddRow(out, "obtainable", FormatSizeExactly(oom.obtainable_bytes()));
  if (oom.event_index() >= 0) {
    AddRow(out, "when",
           StrCat("event ", FormatCount(oom.event_index()), oom.recorded() ? ", as recorded" : "",
                  "; ", Where(oom.segment_pool_id(), oom.stream()), ", ",
                  SegmentTypeName(oom.segment_type())));
    AddRow(out, "by", oom.stack().summary());
    RenderCallers(oom.stack(), out);
  }
  for (const std::string& note : oom.notes()) AddRow(out, "note", note);
  RenderSteps(oom, out);
  RenderUse(oom, out);
  if (oom.categories_size() == 0) RenderCategoryBytes(device.categories(), out);
  RenderLive(oom, out);
  RenderFree(oom, out);
  RenderPinned(oom, out);
  RenderCounterfactuals(oom, answer);
  StrAppend(out, ServingAdvice(device.advice()));
}

}  // namespace memreplay
