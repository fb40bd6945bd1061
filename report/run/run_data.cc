#include "report/run/run_data.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_format.h"
#include "proto/page.pb.h"
#include "report/run/columns.h"
#include "report/words/render_json.h"
#include "report/words/stack_names.h"
#include "report/words/text.h"
#include "sim/run/parallel.h"
#include "sim/settings/size_rules.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

using Values = std::vector<uint64_t>;

// Numbers stacks and texts anew, those that occur, from 0 in order of appearance.
class Numbering {
 public:
  uint64_t Of(uint32_t index) {
    const auto [entry, is_new] = numbers_.try_emplace(index, order_.size());
    if (is_new) order_.push_back(index);
    return entry->second;
  }
  const std::vector<uint32_t>& order() const { return order_; }

 private:
  absl::flat_hash_map<uint32_t, uint64_t> numbers_;
  std::vector<uint32_t> order_;
};

template <typename Rows, typename Field>
Values Gather(const Rows& rows, const Field& field) {
  Values values;
  values.reserve(rows.size());
  for (const auto& row : rows) values.push_back(field(row));
  return values;
}

// A block as long as its request rounded up to 512 bytes, as nearly all are, is 0.
uint64_t BlockOf(const RunLog::Allocation& allocation) {
  const Bytes usual = std::max(RoundUp(allocation.requested_size, kMinBlockSize), kMinBlockSize);
  return allocation.block_size == usual ? 0 : allocation.block_size.value();
}

uint64_t FlagsOf(const RunLog::Range& range) {
  return (range.is_large ? 1u : 0u) | (range.is_expandable ? 2u : 0u);
}

// Of each event; empty where none were recorded. Clocks of several threads step back
// a little now and then: time stands still meanwhile.
Values TimesOf(const Schedule& schedule, const RunLog& log) {
  const std::vector<int64_t>& times = schedule.device_trace().time_us;
  Values values;
  if (schedule.is_program() || times.empty()) return values;
  int64_t latest = times.front();
  for (const uint32_t position : log.positions) {
    if (position < times.size()) latest = std::max(latest, times[position]);
    values.push_back(static_cast<uint64_t>(latest - times.front()));
  }
  return values;
}

// Frames of the stacks in `order`, and how many each has.
void AddStacks(const Trace& trace, const std::vector<uint32_t>& order, proto::PageTexts* texts,
               Values* depths, Values* frames) {
  Numbering numbers;
  StackNames names(trace);
  for (const uint32_t stack : order) {
    texts->add_labels(names.Label(stack));
    texts->add_lines(names.Line(stack));
    texts->add_tags(TagOf(trace, stack));
    depths->push_back(trace.stacks[stack].size());
    for (const uint32_t frame : trace.stacks[stack]) frames->push_back(numbers.Of(frame));
  }
  for (const uint32_t frame : numbers.order()) {
    const Frame& from = trace.stacks.frame(frame);
    if (OriginOf(trace.strings[from.filename]) == FrameOrigin::kOwn) {
      texts->add_own(texts->frames_size());
    }
    texts->add_frames(WholeFrame(trace, from));
  }
}

}  // namespace

RunData MakeRunData(const Schedule& schedule, const RunLog& log, size_t threads) {
  const Trace& trace = schedule.trace();
  proto::PageTexts texts;
  Numbering stacks;
  Numbering strings;
  struct Job {
    std::string_view name;
    Values values;
    bool is_delta = false;
  };
  std::vector<Job> jobs;
  const auto add = [&](std::string_view name, Values values, bool is_delta = false) {
    jobs.push_back({name, std::move(values), is_delta});
  };
  using Allocation = RunLog::Allocation;
  const auto& allocations = log.allocations;
  add("kind", Gather(log.kinds, [](EventKind kind) { return static_cast<uint64_t>(kind); }));
  add("position", Gather(log.positions, [](uint32_t at) { return uint64_t{at}; }), true);
  add("time", TimesOf(schedule, log), true);
  add("address", Gather(allocations, [](const Allocation& a) { return a.address.value(); }));
  add("size", Gather(allocations, [](const Allocation& a) { return a.requested_size.value(); }));
  add("block", Gather(allocations, BlockOf));
  add("stack", Gather(allocations, [&](const Allocation& a) { return stacks.Of(a.stack); }));
  add("stream", Gather(allocations, [](const Allocation& a) { return uint64_t{a.stream}; }));
  add("pool", Gather(allocations, [](const Allocation& a) { return uint64_t{a.pool}; }));
  add("freed", Gather(log.freed, [](uint32_t id) { return uint64_t{id}; }), true);
  add("free_stack", Gather(log.free_stacks, [&](uint32_t id) { return stacks.Of(id); }));

  using Range = RunLog::Range;
  const auto moments = static_cast<uint32_t>(log.kinds.size() + 1);
  add("range_address", Gather(log.ranges, [](const Range& r) { return r.address.value(); }));
  add("range_size", Gather(log.ranges, [](const Range& r) { return r.size.value(); }));
  add("range_begin", Gather(log.ranges, [](const Range& r) { return uint64_t{r.begin}; }), true);
  add("range_end",
      Gather(log.ranges, [&](const Range& r) { return uint64_t{std::min(r.end, moments)}; }));
  add("range_stream", Gather(log.ranges, [](const Range& r) { return uint64_t{r.stream}; }));
  add("range_pool", Gather(log.ranges, [](const Range& r) { return uint64_t{r.pool}; }));
  add("range_flags", Gather(log.ranges, FlagsOf));

  using Other = RunLog::Other;
  add("other_event", Gather(log.others, [](const Other& o) { return uint64_t{o.event}; }), true);
  add("other_address", Gather(log.others, [](const Other& o) { return o.what.address.value(); }));
  add("other_size", Gather(log.others, [](const Other& o) { return o.what.size.value(); }));
  add("other_stream", Gather(log.others, [](const Other& o) { return uint64_t{o.what.stream}; }));
  add("other_text", Gather(log.others, [&](const Other& o) {
        return HasText(o.what.kind) ? strings.Of(o.what.text_or_stack) : strings.Of(kNoText);
      }));
  add("other_stack", Gather(log.others, [&](const Other& o) {
        return HasText(o.what.kind) ? stacks.Of(kNoStack) : stacks.Of(o.what.text_or_stack);
      }));

  Values pending;
  for (size_t i = 0; i < log.start_allocations; ++i) {
    if (allocations[i].starts_pending) pending.push_back(i);
  }
  add("start_pending", std::move(pending), true);
  Values depths, frames;
  AddStacks(trace, stacks.order(), &texts, &depths, &frames);
  add("stack_depth", std::move(depths));
  add("stack_frames", std::move(frames));
  for (const uint32_t text : strings.order()) texts.add_texts(CleanText(trace.strings[text]));
  for (uint32_t i = 0; i < schedule.stream_count(); ++i) {
    texts.add_streams(absl::StrFormat("%#x", schedule.stream_handle(i).value()));
  }
  for (const PoolId& pool : trace.pools) {
    texts.add_pools(pool.is_default() ? "" : StrCat("(", pool.first, ",", pool.second, ")"));
  }
  for (int kind = 0; kind <= static_cast<int>(EventKind::kSnapshot); ++kind) {
    texts.add_kinds(std::string(EventKindName(static_cast<EventKind>(kind))));
  }

  std::vector<Column> columns(jobs.size() + 1);
  ParallelFor(columns.size(), threads, [&](size_t i) {
    columns[i] = i < jobs.size() ? PackColumn(jobs[i].name, jobs[i].values, jobs[i].is_delta)
                                 : PackBytes("texts", RenderJson(texts, JsonLayout::kOneLine));
  });
  return {StrCat("{\"start_allocations\":", log.start_allocations, ",\"start_ranges\":",
                 log.start_ranges, ",\"columns\":", ColumnsJson(columns), "}"),
          ColumnsBase64(columns)};
}

}  // namespace memreplay
