#include "report/run/run_data.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

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

// New numbers for those of `count` things that occur, from 0 in order of appearance.
class Numbering {
 public:
  explicit Numbering(size_t count) : numbers_(count, kNone) {}

  void Add(uint32_t index) {
    if (numbers_[index] != kNone) return;
    numbers_[index] = static_cast<uint32_t>(order_.size());
    order_.push_back(index);
  }
  // Returns the number of a thing that was added.
  uint64_t operator[](uint32_t index) const { return numbers_[index]; }
  const std::vector<uint32_t>& order() const { return order_; }

 private:
  static constexpr uint32_t kNone = 0xffffffff;
  std::vector<uint32_t> numbers_;
  std::vector<uint32_t> order_;
};

template <typename Rows, typename Field>
Values Gather(const Rows& rows, const Field& field) {
  Values values;
  values.reserve(rows.size());
  for (const auto& row : rows) values.push_back(field(row));
  return values;
}

// Returns 0 for a block whose size is the request rounded up to 512 bytes, as in nearly all cases.
uint64_t BlockOf(const RunLog::Allocation& allocation) {
  const Bytes usual = std::max(RoundUp(allocation.requested_size, kMinBlockSize), kMinBlockSize);
  return allocation.block_size == usual ? 0 : allocation.block_size.value();
}

uint64_t FlagsOf(const RunLog::Range& range) {
  return (range.is_large ? 1u : 0u) | (range.is_expandable ? 2u : 0u);
}

// Returns the time of each event; empty if none were recorded. Clocks of several threads
// occasionally step back a little; time stands still meanwhile.
Values TimesOf(const Schedule& schedule, const RunLog& log) {
  const std::vector<int64_t>& times = schedule.device_trace().time_us;
  Values values;
  if (schedule.is_program() || times.empty()) return values;
  values.reserve(log.positions.size());
  int64_t latest = times.front();
  for (const uint32_t position : log.positions) {
    if (position < times.size()) latest = std::max(latest, times[position]);
    values.push_back(static_cast<uint64_t>(latest - times.front()));
  }
  return values;
}

// Adds the frames of the stacks in `order`, and how many each has.
void AddStacks(const Trace& trace, const std::vector<uint32_t>& order, proto::PageTexts* texts,
               Values* depths, Values* frames) {
  Numbering numbers(trace.stacks.frame_count());
  StackNames names(trace);
  for (const uint32_t stack : order) {
    texts->add_labels(names.Label(stack));
    texts->add_lines(names.Line(stack));
    texts->add_tags(TagOf(trace, stack));
    depths->push_back(trace.stacks[stack].size());
    for (const uint32_t frame : trace.stacks[stack]) {
      numbers.Add(frame);
      frames->push_back(numbers[frame]);
    }
  }
  for (const uint32_t frame : numbers.order()) {
    const Frame& from = trace.stacks.frame(frame);
    if (OriginOf(trace.strings[from.filename]) == FrameOrigin::kOwn) {
      texts->add_own(texts->frames_size());
    }
    texts->add_frames(WholeFrame(trace, from));
  }
}

// Categories by number: the known ones, followed by a written schedule's own tags.
class CategoryNumbers {
 public:
  CategoryNumbers(const Trace& trace, const Meanings& meanings) : meanings_(meanings) {
    for (size_t i = 0; i < kCategories; ++i) {
      names_.emplace_back(CategoryNoun(static_cast<Category>(i)));
    }
    if (!trace.is_program) return;
    for (uint32_t stack = 0; stack < trace.stacks.size(); ++stack) {
      const std::string tag = TagOf(trace, stack);
      of_stack_.push_back(kUnknown);
      if (tag.empty() || CategoryOfTag(tag)) continue;
      const auto [entry, is_new] = of_tag_.try_emplace(tag, names_.size());
      if (is_new) names_.push_back(tag);
      of_stack_.back() = entry->second;
    }
  }

  const Meaning& MeaningOf(const RunLog::Allocation& allocation) const {
    static constexpr Meaning kNothing = {};
    return allocation.id < meanings_.of.size() ? meanings_.of[allocation.id] : kNothing;
  }
  uint64_t Of(const RunLog::Allocation& allocation) const {
    const auto category = static_cast<uint64_t>(MeaningOf(allocation).category);
    return category == kUnknown && allocation.stack < of_stack_.size() ? of_stack_[allocation.stack]
                                                                       : category;
  }
  const std::vector<std::string>& names() const { return names_; }

 private:
  static constexpr auto kUnknown = static_cast<uint64_t>(Category::kUnknown);
  const Meanings& meanings_;
  std::vector<std::string> names_;
  std::vector<uint64_t> of_stack_;
  std::map<std::string, uint64_t> of_tag_;
};

}  // namespace

RunData MakeRunData(const Schedule& schedule, const Meanings& meanings, const RunLog& log,
                    size_t threads) {
  const Trace& trace = schedule.trace();
  using Allocation = RunLog::Allocation;
  using Range = RunLog::Range;
  using Other = RunLog::Other;
  const auto& allocations = log.allocations;
  const auto text_of = [](const Other& o) {
    return HasText(o.what.kind) ? o.what.text_or_stack : kNoText;
  };
  const auto stack_of = [](const Other& o) {
    return HasText(o.what.kind) ? kNoStack : o.what.text_or_stack;
  };
  Numbering stacks(trace.stacks.size());
  Numbering strings(trace.strings.size());
  for (const Allocation& allocation : allocations) stacks.Add(allocation.stack);
  for (const uint32_t stack : log.free_stacks) stacks.Add(stack);
  for (const Other& other : log.others) {
    strings.Add(text_of(other));
    stacks.Add(stack_of(other));
  }

  const CategoryNumbers categories(trace, meanings);

  // Each column is made when it is packed, because many are long.
  struct Job {
    std::string_view name;
    std::function<Values()> make;
    bool is_delta;
  };
  std::vector<Job> jobs;
  const auto add = [&](std::string_view name, const auto& rows, auto field, bool is_delta = false) {
    jobs.push_back({name, [&rows, field] { return Gather(rows, field); }, is_delta});
  };
  add("kind", log.kinds, [](EventKind kind) { return static_cast<uint64_t>(kind); });
  add(
      "position", log.positions, [](uint32_t at) { return uint64_t{at}; }, true);
  jobs.push_back({"time", [&] { return TimesOf(schedule, log); }, true});
  add("address", allocations, [](const Allocation& a) { return a.address.value(); });
  add("size", allocations, [](const Allocation& a) { return a.requested_size.value(); });
  add("block", allocations, BlockOf);
  add("stack", allocations, [&](const Allocation& a) { return stacks[a.stack]; });
  add("stream", allocations, [](const Allocation& a) { return uint64_t{a.stream}; });
  add("pool", allocations, [](const Allocation& a) { return uint64_t{a.pool}; });
  add("category", allocations, [&](const Allocation& a) { return categories.Of(a); });
  add("module", allocations, [&](const Allocation& a) { return categories.MeaningOf(a).module; });
  add(
      "phase_begin", meanings.phases, [](const PhaseSpan& span) { return span.begin; }, true);
  add("phase", meanings.phases,
      [](const PhaseSpan& span) { return static_cast<uint64_t>(span.phase); });
  add("step", meanings.phases, [](const PhaseSpan& span) { return uint64_t{span.step}; });
  add(
      "freed", log.freed, [](uint32_t id) { return uint64_t{id}; }, true);
  add("free_stack", log.free_stacks, [&](uint32_t stack) { return stacks[stack]; });

  const auto moments = static_cast<uint32_t>(log.kinds.size() + 1);
  add("range_address", log.ranges, [](const Range& r) { return r.address.value(); });
  add("range_size", log.ranges, [](const Range& r) { return r.size.value(); });
  add(
      "range_begin", log.ranges, [](const Range& r) { return uint64_t{r.begin}; }, true);
  add("range_end", log.ranges, [&](const Range& r) { return uint64_t{std::min(r.end, moments)}; });
  add("range_stream", log.ranges, [](const Range& r) { return uint64_t{r.stream}; });
  add("range_pool", log.ranges, [](const Range& r) { return uint64_t{r.pool}; });
  add("range_flags", log.ranges, FlagsOf);

  add(
      "other_event", log.others, [](const Other& o) { return uint64_t{o.event}; }, true);
  add("other_address", log.others, [](const Other& o) { return o.what.address.value(); });
  add("other_size", log.others, [](const Other& o) { return o.what.size.value(); });
  add("other_stream", log.others, [](const Other& o) { return uint64_t{o.what.stream}; });
  add("other_text", log.others, [&](const Other& o) { return strings[text_of(o)]; });
  add("other_stack", log.others, [&](const Other& o) { return stacks[stack_of(o)]; });

  Values pending;
  for (size_t i = 0; i < log.start_allocations; ++i) {
    if (allocations[i].starts_pending) pending.push_back(i);
  }
  const auto as_it_is = [](uint64_t value) { return value; };
  add("start_pending", pending, as_it_is, true);
  proto::PageTexts texts;
  Values depths, frames;
  AddStacks(trace, stacks.order(), &texts, &depths, &frames);
  add("stack_depth", depths, as_it_is);
  add("stack_frames", frames, as_it_is);
  for (const uint32_t text : strings.order()) texts.add_texts(CleanText(trace.strings[text]));
  for (uint32_t i = 0; i < schedule.stream_count(); ++i) {
    texts.add_streams(absl::StrFormat("%#x", schedule.stream_handle(i).value()));
  }
  for (const PoolId& pool : schedule.pools()) {
    texts.add_pools(pool.is_default() ? "" : StrCat("(", pool.first, ",", pool.second, ")"));
  }
  for (int kind = 0; kind <= static_cast<int>(EventKind::kSnapshot); ++kind) {
    texts.add_kinds(std::string(EventKindName(static_cast<EventKind>(kind))));
  }

  for (const std::string& name : categories.names()) texts.add_categories(name);
  for (const std::string& path : meanings.modules) texts.add_modules(CleanText(path));
  for (size_t phase = 0; phase < kPhases; ++phase) {
    texts.add_phases(std::string(PhaseName(static_cast<Phase>(phase))));
  }

  std::vector<Column> columns(jobs.size() + 1);
  ParallelFor(columns.size(), threads, [&](size_t i) {
    columns[i] = i < jobs.size() ? PackColumn(jobs[i].name, jobs[i].make(), jobs[i].is_delta)
                                 : PackBytes("texts", RenderJson(texts, JsonLayout::kOneLine));
  });
  return {StrCat("{\"start_allocations\":", log.start_allocations, ",\"start_ranges\":",
                 log.start_ranges, ",\"columns\":", ColumnsJson(columns), "}"),
          ColumnsBase64(columns)};
}

}  // namespace memreplay
