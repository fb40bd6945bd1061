#include <algorithm>
#include <string_view>
#include <tuple>
#include <vector>

#include "report/table/tables.h"
#include "report/text/render.h"
#include "report/text/render_table.h"
#include "report/words/lines.h"
#include "report/words/names.h"
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
  AddTable(UseTable(use), out);
  if (use.private_pool_bytes() > 0) {
    AddRow(out, "private pools", FormatSize(use.private_pool_bytes()), " of it, ",
           FormatSize(use.private_pool_free_bytes()), " of that free");
  }
  if (use.pending_before_bytes() > 0) {
    AddRow(out, "pending before", FormatSize(use.pending_before_bytes()),
           " were waiting for other streams when the request arrived");
  }
}

// Appends the categories of a recording; `bytes` are as requested.
void RenderCategoryBytes(const proto::Categories& categories, std::string* out) {
  std::vector<HeldRow> rows;
  for (const auto& [category, bytes] : categories.bytes_by_category()) {  // in any order
    rows.push_back({bytes, CategoryNoun(category)});
  }
  std::ranges::sort(rows, [](const HeldRow& a, const HeldRow& b) {
    return std::tie(b.bytes, a.who.words) < std::tie(a.bytes, b.who.words);
  });
  AddTable(HeldTable("live by category, as requested", "category", rows, 0), out);
}

void RenderLive(const proto::OutOfMemory& oom, std::string* out) {
  std::vector<HeldRow> categories, stacks;
  for (const proto::HeldBytes& held : oom.categories()) {
    categories.push_back({held.bytes(), CategoryNoun(held.category()), held.allocations()});
  }
  for (const proto::HeldBytes& held : oom.live()) {
    if (std::ssize(stacks) == kMaxLiveShown) break;
    stacks.push_back({held.bytes(), held.stack().summary(), held.allocations()});
  }
  AddTable(HeldTable("live by category", "category", categories, 0), out);
  Table table = HeldTable("live by stack", "stack", stacks, 0);
  if (oom.live_stacks() > kMaxLiveShown) {
    table.note = StrCat("and ", FormatCount(oom.live_stacks() - kMaxLiveShown, "more stack"));
  }
  AddTable(table, out);
}

void RenderSteps(const proto::OutOfMemory& oom, std::string* out) {
  if (oom.steps().steps() == 0) return;
  const std::string_view step = oom.steps().may_be_layers() ? "repeat" : "step";
  AddRow(out, StrCat(step, "s"), FormatCount(oom.steps().steps()), " before it, with ",
         FormatCount(oom.steps().allocations_per_step(), "allocation"), " each, found by ",
         StepSourceName(oom.steps().source()), "; live memory grows by ",
         FormatSize(oom.steps().growth_bytes_per_step()), " per ", step,
         oom.steps().may_be_layers() ? "; these may be the layers of one pass" : "");
  if (oom.has_leak()) {
    AddRow(out, "left behind", FormatSize(oom.leak().left_bytes()), " in ",
           FormatCount(oom.leak().left_allocations(), "allocation"), " by ",
           oom.leak().stack().summary());
  }
}

// Appends the script's own frames, from the one that the summary begins with outwards.
void RenderCallers(const proto::Stack& stack, std::string* out) {
  for (int i = 0; i < std::min(stack.own_size(), kMaxCallers); ++i) {
    AddRow(out, "", i == 0 ? "at " : "called from ", stack.frames(stack.own(i)));
  }
  if (const int folded = stack.own_size() - kMaxCallers; folded > 0) {
    AddRow(out, "", "called from ", FormatCount(folded, "more frame"));
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
    AddRow(out, "when", "event ", FormatCount(oom.event_index()),
           oom.recorded() ? ", as recorded" : "", "; ", Where(oom.segment_pool_id(), oom.stream()),
           ", ", SegmentTypeName(oom.segment_type()));
    AddRow(out, "by", oom.stack().summary());
    RenderCallers(oom.stack(), out);
  }
  for (const std::string& note : oom.notes()) AddRow(out, "note", note);
  RenderSteps(oom, out);
  RenderUse(oom, out);
  if (oom.categories_size() == 0) RenderCategoryBytes(device.categories(), out);
  RenderLive(oom, out);
  AddTable(FreeTable(oom.largest_free(), kMaxFreeLists), out);
  AddTable(PinnedTable(oom, kMaxPinnedShown), out);
  AddTable(HelpTable(oom), answer);
  AddTable(ServingTable(device.advice()), out);
}

}  // namespace memreplay
