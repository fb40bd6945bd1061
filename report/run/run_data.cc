#include "report/run/run_data.h"

#include <zlib.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_format.h"
#include "proto/page.pb.h"
#include "report/words/names.h"
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
class NewNumbers {
 public:
  explicit NewNumbers(size_t count) : numbers_(count, kNone) {}

  void Add(uint32_t index) {
    if (numbers_[index] != kNone) return;
    numbers_[index] = static_cast<uint32_t>(order_.size());
    order_.push_back(index);
  }
  // Returns the number of a thing that was added.
  uint32_t operator[](uint32_t index) const { return numbers_[index]; }
  const std::vector<uint32_t>& order() const { return order_; }

 private:
  static constexpr uint32_t kNone = 0xffffffff;
  std::vector<uint32_t> numbers_;
  std::vector<uint32_t> order_;
};

// Packs a field of all rows, with as many bytes as the field has.
template <typename Rows, typename Field>
Column PackField(std::string_view name, const Rows& rows, const Field& field, bool is_delta) {
  std::vector<decltype(field(rows[0]))> values(rows.size());
  for (size_t i = 0; i < values.size(); ++i) values[i] = field(rows[i]);
  return PackColumn(name, std::move(values), is_delta);
}

// Returns 0 for a block whose size is the request rounded up to 512 bytes, as in nearly all cases.
uint64_t BlockOf(const RunLog::Allocation& allocation) {
  const Bytes usual = std::max(RoundUp(allocation.requested_size, kMinBlockSize), kMinBlockSize);
  return allocation.block_size == usual ? 0 : allocation.block_size.value();
}

uint8_t FlagsOf(const RunLog::Range& range) {
  return static_cast<uint8_t>((range.is_large ? 1 : 0) | (range.is_expandable ? 2 : 0));
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
  NewNumbers numbers(trace.stacks.frame_count());
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
      names_.emplace_back(CategoryNoun(CategoryName(static_cast<Category>(i))));
    }
    if (!trace.is_program) return;
    for (uint32_t stack = 0; stack < trace.stacks.size(); ++stack) {
      const std::string tag = TagOf(trace, stack);
      of_stack_.push_back(kUnknown);
      if (tag.empty() || CategoryOfTag(tag)) continue;
      const auto [entry, is_new] = of_tag_.try_emplace(tag, static_cast<uint32_t>(names_.size()));
      if (is_new) names_.push_back(tag);
      of_stack_.back() = entry->second;
    }
  }

  const Meaning& MeaningOf(const RunLog::Allocation& allocation) const {
    static constexpr Meaning kNothing = {};
    return allocation.id < meanings_.of.size() ? meanings_.of[allocation.id] : kNothing;
  }
  uint32_t Of(const RunLog::Allocation& allocation) const {
    const auto category = static_cast<uint32_t>(MeaningOf(allocation).category);
    return category == kUnknown && allocation.stack < of_stack_.size() ? of_stack_[allocation.stack]
                                                                       : category;
  }
  const std::vector<std::string>& names() const { return names_; }

 private:
  static constexpr auto kUnknown = static_cast<uint32_t>(Category::kUnknown);
  const Meanings& meanings_;
  std::vector<std::string> names_;
  std::vector<uint32_t> of_stack_;
  std::map<std::string, uint32_t> of_tag_;
};

// Level 6 takes a third longer to write and saves a twentieth. For columns of one or two bytes per
// value, level 3 takes half the time of level 4 and needs as few bytes.
constexpr int kLevel = 4;
constexpr int kLevelOfNarrow = 3;

std::string Deflate(std::string_view bytes, int level) {
  uLongf length = compressBound(bytes.size());
  const auto packed = std::unique_ptr<char[]>(new char[length]);
  const int status = compress2(reinterpret_cast<Bytef*>(packed.get()), &length,
                               reinterpret_cast<const Bytef*>(bytes.data()), bytes.size(), level);
  if (status != Z_OK) std::abort();  // there is room for any input
  return {packed.get(), length};
}

// Passes the values from `begin` on to `take`, in blocks whose constant length lets the compiler
// use vector instructions; the last values come one by one.
template <typename Take>
void ForBlocks(size_t begin, size_t end, Take take) {
  constexpr size_t kBlock = 64;
  for (; end - begin >= kBlock; begin += kBlock) {
    for (size_t i = begin; i < begin + kBlock; ++i) take(i);
  }
  for (; begin < end; ++begin) take(begin);
}

// Returns the greatest common divisor of all; 1 if they are 0.
template <typename Value>
uint64_t UnitOf(const std::vector<Value>& values) {
  const Value* const from = values.data();
  Value all = 0;
  ForBlocks(0, values.size(), [&](size_t i) { all |= from[i]; });
  if (all == 0) return 1;
  // Its power of two is that of all values or-ed together; the rest soon becomes 1 in most cases.
  const int twos = std::countr_zero(all);
  uint64_t rest = 0;
  for (const Value value : values) {
    if (rest == 1) break;
    rest = std::gcd(rest, uint64_t{value} >> twos);
  }
  return rest << twos;
}

template <typename Value>
void Divide(uint64_t unit, std::vector<Value>* values) {
  if (unit == 1) return;
  Value* const to = values->data();
  if (std::has_single_bit(unit)) {
    const int twos = std::countr_zero(unit);
    ForBlocks(0, values->size(), [&](size_t i) { to[i] = static_cast<Value>(to[i] >> twos); });
  } else {
    for (Value& value : *values) value = static_cast<Value>(value / unit);
  }
}

uint64_t Zigzag(uint64_t now, uint64_t before) {
  const auto difference = static_cast<int64_t>(now - before);
  return (static_cast<uint64_t>(difference) << 1) ^ static_cast<uint64_t>(difference >> 63);
}

// Stores the `count` values of `read` in planes. The first, which is not the difference from
// another, is `first`.
template <typename Read>
void PackPlanes(size_t count, uint64_t first, Read read, Column* column) {
  uint64_t all = first;
  ForBlocks(1, std::max<size_t>(count, 1), [&](size_t i) { all |= read(i); });
  column->width = std::max(1, (static_cast<int>(std::bit_width(all)) + 7) / 8);
  const size_t size = count * static_cast<size_t>(column->width);
  const auto planes = std::unique_ptr<char[]>(new char[size]);
  for (int byte = 0; byte < column->width && count > 0; ++byte) {
    char* const plane = planes.get() + count * static_cast<size_t>(byte);
    plane[0] = static_cast<char>(first >> (8 * byte) & 0xff);
    ForBlocks(1, count,
              [&](size_t i) { plane[i] = static_cast<char>(read(i) >> (8 * byte) & 0xff); });
  }
  column->deflated = Deflate({planes.get(), size}, column->width <= 2 ? kLevelOfNarrow : kLevel);
}

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
  NewNumbers stacks(trace.stacks.size());
  NewNumbers strings(trace.strings.size());
  for (const Allocation& allocation : allocations) stacks.Add(allocation.stack);
  for (const uint32_t stack : log.free_stacks) stacks.Add(stack);
  for (const Other& other : log.others) {
    strings.Add(text_of(other));
    stacks.Add(stack_of(other));
  }

  const CategoryNumbers categories(trace, meanings);

  // Each column is made when it is packed, because many are long.
  std::vector<std::function<Column()>> jobs;
  const auto add = [&](std::string_view name, const auto& rows, auto field, bool is_delta = false) {
    jobs.emplace_back(
        [name, &rows, field, is_delta] { return PackField(name, rows, field, is_delta); });
  };
  add("kind", log.kinds, [](EventKind kind) { return static_cast<uint8_t>(kind); });
  add(
      "position", log.positions, [](uint32_t at) { return at; }, true);
  jobs.emplace_back([&] { return PackColumn("time", TimesOf(schedule, log), true); });
  add("address", allocations, [](const Allocation& a) { return a.address.value(); });
  add("size", allocations, [](const Allocation& a) { return a.requested_size.value(); });
  add("block", allocations, BlockOf);
  add("stack", allocations, [&](const Allocation& a) { return stacks[a.stack]; });
  add("stream", allocations, [](const Allocation& a) { return a.stream; });
  add("pool", allocations, [](const Allocation& a) { return a.pool; });
  add("category", allocations, [&](const Allocation& a) { return categories.Of(a); });
  add("module", allocations, [&](const Allocation& a) { return categories.MeaningOf(a).module; });
  add(
      "phase_begin", meanings.phases, [](const PhaseSpan& span) { return span.begin; }, true);
  add("phase", meanings.phases,
      [](const PhaseSpan& span) { return static_cast<uint8_t>(span.phase); });
  add("step", meanings.phases, [](const PhaseSpan& span) { return span.step; });
  add(
      "freed", log.freed, [](uint32_t id) { return id; }, true);
  add("free_stack", log.free_stacks, [&](uint32_t stack) { return stacks[stack]; });

  const auto moments = static_cast<uint32_t>(log.kinds.size() + 1);
  add("range_address", log.ranges, [](const Range& r) { return r.address.value(); });
  add("range_size", log.ranges, [](const Range& r) { return r.size.value(); });
  add(
      "range_begin", log.ranges, [](const Range& r) { return r.begin; }, true);
  add("range_end", log.ranges, [&](const Range& r) { return std::min(r.end, moments); });
  add("range_stream", log.ranges, [](const Range& r) { return r.stream; });
  add("range_pool", log.ranges, [](const Range& r) { return r.pool; });
  add("range_flags", log.ranges, FlagsOf);

  add(
      "other_event", log.others, [](const Other& o) { return o.event; }, true);
  add("other_address", log.others, [](const Other& o) { return o.what.address.value(); });
  add("other_size", log.others, [](const Other& o) { return o.what.size.value(); });
  add("other_stream", log.others, [](const Other& o) { return o.what.stream; });
  add("other_text", log.others, [&](const Other& o) { return strings[text_of(o)]; });
  add("other_stack", log.others, [&](const Other& o) { return stacks[stack_of(o)]; });

  Values pending;
  for (size_t i = 0; i < log.start_allocations; ++i) {
    if (allocations[i].starts_pending) pending.push_back(i);
  }
  const auto as_it_is = [](uint64_t value) { return value; };
  add("start_pending", pending, as_it_is, true);

  // The stacks and the texts are made together.
  std::vector<Column> of_texts(3);
  const auto make_texts = [&] {
    proto::PageTexts texts;
    Values depths, frames;
    AddStacks(trace, stacks.order(), &texts, &depths, &frames);
    of_texts[0] = PackColumn("stack_depth", std::move(depths), false);
    of_texts[1] = PackColumn("stack_frames", std::move(frames), false);
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
    of_texts[2] = PackBytes("texts", RenderJson(texts, JsonLayout::kOneLine));
  };

  std::vector<Column> columns(jobs.size());
  ParallelFor(jobs.size() + 1, threads, [&](size_t i) {
    if (i == 0) {
      make_texts();
    } else {
      columns[i - 1] = jobs[i - 1]();
    }
  });
  std::move(of_texts.begin(), of_texts.end(), std::back_inserter(columns));
  return {StrCat("{\"start_allocations\":", log.start_allocations, ",\"start_ranges\":",
                 log.start_ranges, ",\"columns\":", ColumnsJson(columns), "}"),
          ColumnsBase64(columns)};
}

template <typename Value>
Column PackColumn(std::string_view name, std::vector<Value> values, bool is_delta) {
  Column column;
  column.name = name;
  column.count = values.size();
  column.is_delta = is_delta;
  column.unit = UnitOf(values);
  Divide(column.unit, &values);
  const Value* const from = values.data();
  const uint64_t first = values.empty() ? 0 : values.front();
  if (is_delta) {
    PackPlanes(
        values.size(), first, [from](size_t i) { return Zigzag(from[i], from[i - 1]); }, &column);
  } else {
    PackPlanes(
        values.size(), first, [from](size_t i) { return uint64_t{from[i]}; }, &column);
  }
  return column;
}
template Column PackColumn(std::string_view, std::vector<uint8_t>, bool);
template Column PackColumn(std::string_view, std::vector<uint16_t>, bool);
template Column PackColumn(std::string_view, std::vector<uint32_t>, bool);
template Column PackColumn(std::string_view, std::vector<uint64_t>, bool);

Column PackBytes(std::string_view name, std::string_view bytes) {
  Column column;
  column.name = name;
  column.count = bytes.size();
  column.deflated = Deflate(bytes, kLevel);
  return column;
}

std::string ColumnsJson(const std::vector<Column>& columns) {
  std::string json = "[";
  for (const Column& column : columns) {
    StrAppend(&json, json.size() > 1 ? "," : "", "{\"name\":\"", column.name,
              "\",\"count\":", column.count, ",\"unit\":", column.unit, ",\"width\":", column.width,
              ",\"delta\":", column.is_delta ? "true" : "false",
              ",\"bytes\":", column.deflated.size(), "}");
  }
  return StrCat(json, "]");
}

std::string ColumnsBase64(const std::vector<Column>& columns) {
  std::string bytes;
  for (const Column& column : columns) bytes += column.deflated;
  std::string text;
  absl::Base64Escape(bytes, &text);
  return text;
}

}  // namespace memreplay
