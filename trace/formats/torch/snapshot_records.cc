#include "trace/formats/torch/snapshot_records.h"

#include <algorithm>
#include <cassert>
#include <limits>

#include "trace/value/status_macros.h"
#include "trace/value/strings.h"
#include "trace/value/utf8.h"

namespace memreplay {
namespace {

using Kind = Value::Kind;
using Type = ValueHeap::Type;

// Approximate bytes, including places in tables.
constexpr uint64_t kStackMemory = 48;
constexpr uint64_t kFrameMemory = 48;
constexpr size_t kKeptProblems = 64;
constexpr size_t kDistinctUnknownKeys = 256;

constexpr EventKind kActionKinds[] = {
    EventKind::kAlloc,        EventKind::kFree,        EventKind::kFreeCompleted,
    EventKind::kSegmentAlloc, EventKind::kSegmentFree, EventKind::kSegmentMap,
    EventKind::kSegmentUnmap, EventKind::kOom,         EventKind::kSnapshot,
};

// Replaces bytes that are not UTF-8 by '?', since texts go into reports, which are UTF-8.
std::string Utf8(std::string_view text) { return ReplaceBadUtf8(text, "?"); }

}  // namespace

SnapshotRecords::SnapshotRecords(ValueHeap& heap, Trace* trace) : heap_(heap), trace_(trace) {
  for (uint32_t i = 0; i < std::size(kSnapshotTexts); ++i) {
    const uint32_t index = heap_.strings().Intern(kSnapshotTexts[i]);
    assert(index == i);
    (void)index;
  }
  pool_index_[PoolId{}] = 0;
}

absl::Status SnapshotRecords::AddItems(ValueHeap& heap, Value* target, absl::Span<Value> pairs,
                                       uint64_t position) {
  *target = heap.Resolve(*target);
  if (target->is(Kind::kRecord)) return SetFields(*target, pairs, position);
  if (!heap.is(*target, Type::kDict)) {
    return absl::InvalidArgumentError(StrCat("byte ", position, ": items are set in ",
                                             heap.Describe(*target), ", expected a dict"));
  }
  // A single key reveals what a dict will be.
  Value record;
  for (size_t i = 0; i < pairs.size() && record.is(Kind::kAbsent); i += 2) {
    switch (KeyOf(pairs[i])) {
      case SnapshotKey("action"):
        record = Value::Record(kEvent, static_cast<uint32_t>(events_.size()));
        events_.emplace_back().scratch = kHasKind;
        times_.push_back(0);
        partial_events_.push_back(record.index());
        break;
      case SnapshotKey("state"):
        record = Value::Record(kBlock, static_cast<uint32_t>(blocks_.size()));
        blocks_.emplace_back();
        break;
      case SnapshotKey("stage"):
        record = Value::Record(kAnnotation, static_cast<uint32_t>(annotations_.size()));
        annotations_.emplace_back();
        annotation_fields_.push_back(0);
        break;
      default: break;
    }
  }
  if (record.is(Kind::kAbsent)) {
    heap.Extend(*target, pairs, position);
    return absl::OkStatus();
  }
  // The dict is replaced before its fields are set, so that one that contains itself is never seen
  // incomplete.
  const absl::Span<Value> held = heap.items(*target);
  std::vector<Value> earlier(held.begin(), held.end());
  heap.Replace(*target, record);
  *target = record;
  if (!earlier.empty()) {
    RETURN_IF_ERROR(SetFields(record, absl::MakeSpan(earlier), position));
  }
  return SetFields(record, pairs, position);
}

bool SnapshotRecords::BeginRows(absl::Span<const Value> keys) {
  RowFields fields;
  ptrdiff_t ignored = -1, context = -1, metadata = -1, category = -1;
  for (size_t i = 0; i < keys.size(); ++i) {
    ptrdiff_t* field = &ignored;
    switch (KeyOf(keys[i])) {
      case SnapshotKey("action"): field = &fields.action; break;
      case SnapshotKey("addr"): field = &fields.address; break;
      case SnapshotKey("size"): field = &fields.size; break;
      case SnapshotKey("stream"): field = &fields.stream; break;
      case SnapshotKey("time_us"): field = &fields.time; break;
      case SnapshotKey("frames"): field = &fields.stack; break;
      case SnapshotKey("pool_id"):
      case SnapshotKey("segment_pool_id"): field = &fields.pool; break;
      case SnapshotKey("compile_context"): field = &context; break;
      case SnapshotKey("user_metadata"): field = &metadata; break;
      case SnapshotKey("category"): field = &category; break;
      default: return false;
    }
    if (*field >= 0) return false;
    *field = static_cast<ptrdiff_t>(i);
  }
  if (fields.action < 0 || fields.address < 0 || fields.size < 0 || fields.stream < 0) return false;
  row_ = fields;
  trace_->layout.has_time_us |= fields.time >= 0;
  trace_->layout.has_event_pool_id |= fields.pool >= 0;
  trace_->layout.has_compile_context |= context >= 0;
  trace_->layout.has_user_metadata |= metadata >= 0;
  return true;
}

// Does the same as SetEventField(), for values of the usual types, but for the stream's index.
[[gnu::always_inline]] inline bool SnapshotRecords::MakeEvent(const RowFields& fields,
                                                              absl::Span<const Value> row,
                                                              Event* event, int64_t* time,
                                                              uint64_t* stream) {
  const Value* const values = row.data();
  const auto is_natural = [](Value v) { return v.is(Kind::kInt) && v.inline_int() >= 0; };
  const Value action = values[fields.action];
  const Value address = values[fields.address];
  const Value size = values[fields.size];
  const Value handle = values[fields.stream];
  // An index below that of the first action wraps around and is too large.
  const uint32_t kind = action.index() - SnapshotKey("alloc");
  if (!action.is(Kind::kString) || kind >= std::size(kActionKinds) || !is_natural(address) ||
      !is_natural(size) || !is_natural(handle)) {
    return false;
  }
  uint8_t found = kHasKind | kHasAddress | kHasSize | kHasStream;
  *time = 0;
  if (fields.time >= 0) {
    if (!values[fields.time].is(Kind::kInt)) return false;
    *time = values[fields.time].inline_int();
    found |= kHasTime;
  }
  if (fields.stack >= 0) {
    const Value frames = values[fields.stack];
    if (frames.is_record(kStack)) {
      event->text_or_stack = frames.index();
    } else if (!frames.is(Kind::kNone) && !frames.is(Kind::kObject)) {  // a used list is empty
      return false;
    }
  }
  if (fields.pool >= 0) {
    if (!values[fields.pool].is_record(kPool)) return false;
    event->pool = static_cast<uint16_t>(values[fields.pool].index());
  }
  event->kind = kActionKinds[kind];
  event->scratch = found == kWholeEvent ? 0 : found;
  event->address = Address(static_cast<uint64_t>(address.inline_int()));
  event->size = Bytes(static_cast<uint64_t>(size.inline_int()));
  *stream = static_cast<uint64_t>(handle.inline_int());
  return true;
}

bool SnapshotRecords::AddRow(absl::Span<const Value> row, Value* record) {
  Event event;
  int64_t time;
  uint64_t stream;
  if (!MakeEvent(row_, row, &event, &time, &stream)) return false;
  event.stream = StreamIndex(stream);
  *record = Value::Record(kEvent, static_cast<uint32_t>(events_.size()));
  if (event.scratch != 0) partial_events_.push_back(record->index());
  events_.push_back(event);
  times_.push_back(time);
  return true;
}

// Keeps events on streams that were known.
class SnapshotRecords::Taker : public RowTaker {
 public:
  explicit Taker(SnapshotRecords& records) : records_(records) {}

  void Restart() override {
    events_.clear();
    times_.clear();
    fields_ = records_.row_;
    streams_.clear();
    if (records_.streams_.size() <= kMaxStreams) streams_ = records_.stream_index_;
    last_stream_ = 0;
    last_index_ = kUnknown;
  }

  bool AddRow(absl::Span<const Value> row) override {
    Event event;
    int64_t time;
    uint64_t stream;
    if (!MakeEvent(fields_, row, &event, &time, &stream)) return false;
    if (stream != last_stream_ || last_index_ == kUnknown) {
      const auto known = streams_.find(stream);
      if (known == streams_.end()) return false;
      last_stream_ = stream;
      last_index_ = known->second;
    }
    event.stream = last_index_;
    events_.push_back(event);
    times_.push_back(time);
    return true;
  }

  Value Pass(size_t first, size_t count) override {
    const auto record = Value::Record(kEvent, static_cast<uint32_t>(records_.events_.size()));
    for (uint32_t i = 0; i < count && fields_.time < 0; ++i) {  // without a time, none is whole
      records_.partial_events_.push_back(record.index() + i);
    }
    const auto begin = static_cast<ptrdiff_t>(first);
    const auto end = static_cast<ptrdiff_t>(first + count);
    records_.events_.insert(records_.events_.end(), events_.begin() + begin, events_.begin() + end);
    records_.times_.insert(records_.times_.end(), times_.begin() + begin, times_.begin() + end);
    return record;
  }

 private:
  static constexpr uint32_t kUnknown = 0xffffffff;
  static constexpr size_t kMaxStreams = 1024;  // as many are copied

  SnapshotRecords& records_;
  RowFields fields_;
  absl::flat_hash_map<uint64_t, uint32_t> streams_;
  uint64_t last_stream_ = 0;
  uint32_t last_index_ = kUnknown;
  std::vector<Event> events_;
  std::vector<int64_t> times_;
};

std::unique_ptr<RowTaker> SnapshotRecords::NewRowTaker() { return std::make_unique<Taker>(*this); }

absl::Status SnapshotRecords::SetFields(Value record, absl::Span<Value> pairs, uint64_t position) {
  const uint32_t index = record.index();
  std::string_view where;
  switch (record.tag()) {
    case kEvent:
      where = "a trace entry";
      if (events_[index].scratch == 0) {
        events_[index].scratch = kWholeEvent;
        partial_events_.push_back(index);
      }
      break;
    case kBlock: where = "a block"; break;
    case kAnnotation: where = "an annotation"; break;
    default:
      return absl::InvalidArgumentError(
          StrCat("byte ", position, ": a frame or a pool id changes after it was used"));
  }
  for (size_t i = 0; i < pairs.size(); i += 2) {
    const uint32_t key = KeyOf(pairs[i]);
    Value* const value = &pairs[i + 1];
    absl::Status status;
    uint8_t* fields = nullptr;
    if (record.tag() == kEvent) {
      status = SetEventField(events_[index], times_[index], key, value);
      fields = &events_[index].scratch;
    } else if (record.tag() == kBlock) {
      status = SetBlockField(blocks_[index], key, value);
      fields = &blocks_[index].fields;
    } else {
      fields = &annotation_fields_[index];
      status = SetAnnotationField(annotations_[index], *fields, key, *value);
    }
    if (status.ok()) continue;
    if (absl::IsNotFound(status)) {
      CountUnknownKey(where, pairs[i], position);
      heap_.Release(value);
      continue;
    }
    *fields |= kBad;
    if (problems_.size() < kKeptProblems) {
      problems_.emplace_back(record, StrCat("byte ", position, ": '", kSnapshotTexts[key], "' of ",
                                            where, ": ", ToStd(status.message())));
    }
  }
  return absl::OkStatus();
}

absl::Status SnapshotRecords::SetEventField(Event& event, int64_t& time, uint32_t key,
                                            Value* value) {
  switch (key) {
    case SnapshotKey("action"): {
      // An index below that of the first action wraps around and is too large.
      const uint32_t kind = value->index() - SnapshotKey("alloc");
      event.scratch |= kHasKind;
      event.scratch &= static_cast<uint8_t>(~kUnknownAction);
      if (!value->is(Kind::kString)) return heap_.Expected("an action name", *value);
      if (kind < std::size(kActionKinds)) {
        event.kind = kActionKinds[kind];
        return absl::OkStatus();
      }
      event.scratch |= kUnknownAction;
      return TakeText(*value, &event.id);
    }
    case SnapshotKey("addr"):
      event.scratch |= kHasAddress;
      return TakeInteger(*value, &event.address);
    case SnapshotKey("device_free"):
      event.scratch |= kHasDeviceFree;
      return TakeInteger(*value, &event.address);
    case SnapshotKey("size"): event.scratch |= kHasSize; return TakeInteger(*value, &event.size);
    case SnapshotKey("stream"): {
      uint64_t handle = 0;
      const absl::Status status = TakeInteger(*value, &handle);
      event.stream = StreamIndex(handle);
      event.scratch |= kHasStream;
      return status;
    }
    case SnapshotKey("time_us"):
      event.scratch |= kHasTime;
      trace_->layout.has_time_us = true;
      return TakeSigned(*value, &time);
    case SnapshotKey("frames"): return TakeStack(value, &event.text_or_stack);
    case SnapshotKey("pool_id"):
    case SnapshotKey("segment_pool_id"):
      trace_->layout.has_event_pool_id = true;
      return TakePool(value, &event.pool);
    case SnapshotKey("compile_context"): trace_->layout.has_compile_context = true; break;
    case SnapshotKey("user_metadata"): trace_->layout.has_user_metadata = true; break;
    case SnapshotKey("category"): break;
    default: return absl::NotFoundError("");
  }
  heap_.Release(value);
  return absl::OkStatus();
}

absl::Status SnapshotRecords::SetBlockField(Block& block, uint32_t key, Value* value) {
  switch (key) {
    case SnapshotKey("address"):
      block.fields |= kHasAddress;
      trace_->layout.has_block_addresses = true;
      return TakeInteger(*value, &block.info.address);
    case SnapshotKey("size"):
      block.fields |= kHasSize;
      return TakeInteger(*value, &block.info.size);
    case SnapshotKey("requested_size"):
      block.fields |= kHasRequested;
      return TakeInteger(*value, &block.info.requested_size);
    case SnapshotKey("state"):
      block.fields |= kHasKind;
      switch (KeyOf(*value)) {
        case SnapshotKey("active_allocated"): block.info.state = BlockState::kAllocated; break;
        case SnapshotKey("active_pending_free"):
        case SnapshotKey("active_awaiting_free"):
          block.info.state = BlockState::kPendingFree;
          break;
        case SnapshotKey("inactive"): block.info.state = BlockState::kInactive; break;
        default: return heap_.Expected("active_allocated, active_pending_free or inactive", *value);
      }
      return absl::OkStatus();
    case SnapshotKey("frames"): return TakeStack(value, &block.info.stack);
    case SnapshotKey("history"):
      trace_->layout.has_block_history = true;
      return TakeHistory(value, &block.info.stack);
    default: return absl::NotFoundError("");
  }
}

absl::Status SnapshotRecords::SetAnnotationField(Annotation& annotation, uint8_t& fields,
                                                 uint32_t key, Value value) {
  switch (key) {
    case SnapshotKey("name"): return TakeText(value, &annotation.name);
    case SnapshotKey("stage"): fields |= kHasKind; return TakeText(value, &annotation.stage);
    case SnapshotKey("device"): {
      int64_t number = 0;
      const absl::Status status = TakeSigned(value, &number);
      annotation.device = static_cast<int>(std::clamp<int64_t>(
          number, std::numeric_limits<int>::min(), std::numeric_limits<int>::max()));
      return status;
    }
    case SnapshotKey("time_us"): fields |= kHasTime; return TakeSigned(value, &annotation.time_us);
    default: return absl::NotFoundError("");
  }
}

absl::Status SnapshotRecords::TakeStack(Value* slot, uint32_t* stack) {
  *slot = heap_.Resolve(*slot);
  if (slot->is_record(kStack)) {
    *stack = slot->index();
    return absl::OkStatus();
  }
  *stack = kNoStack;
  if (slot->is(Kind::kNone)) return absl::OkStatus();
  if (!heap_.is_sequence(*slot)) return heap_.Expected("a list of frames", *slot);
  const absl::Span<Value> items = heap_.items(*slot);
  if (items.empty()) {  // often one list that is shared by all, perhaps also outside of frames
    heap_.MarkUsed(*slot);
    return absl::OkStatus();
  }
  frames_.resize(items.size());
  for (size_t i = 0; i < items.size(); ++i) {
    if (items[i].is_record(kFrame)) {
      frames_[i] = items[i].index();
    } else
      RETURN_IF_ERROR(TakeFrame(&items[i], &frames_[i]));
  }
  const size_t stacks = trace_->stacks.size();
  *stack = trace_->stacks.InternStack(frames_);
  if (trace_->stacks.size() != stacks) stack_memory_ += kStackMemory + 8 * frames_.size();
  const Value record = Value::Record(kStack, *stack);
  heap_.Replace(*slot, record);
  *slot = record;
  return absl::OkStatus();
}

absl::Status SnapshotRecords::TakeFrame(Value* slot, uint32_t* index) {
  *slot = heap_.Resolve(*slot);
  if (slot->is_record(kFrame)) {
    *index = slot->index();
    return absl::OkStatus();
  }
  if (!heap_.is(*slot, Type::kDict)) return heap_.Expected("a frame (a dict)", *slot);
  Frame frame;
  const absl::Span<Value> items = heap_.items(*slot);
  for (size_t i = 0; i < items.size(); i += 2) {
    const Value value = items[i + 1];
    absl::Status status;
    switch (KeyOf(items[i])) {
      case SnapshotKey("name"):
        if (!value.is(Kind::kNone)) status = TakeText(value, &frame.name);
        break;
      case SnapshotKey("filename"):
        if (!value.is(Kind::kNone)) status = TakeText(value, &frame.filename);
        break;
      case SnapshotKey("line"): {
        // A missing line is written as None, 0, a negative number or 2^64-1.
        if (value.is(Kind::kNone)) break;
        const std::optional<WideInt> line = heap_.AsInteger(value);
        if (!line.has_value()) status = heap_.Expected("a line number", value);
        frame.line = line.has_value() && !line->negative && line->bits < 0xffffffff
                         ? static_cast<uint32_t>(line->bits)
                         : 0;
        break;
      }
      case SnapshotKey("fx_node_op"):
      case SnapshotKey("fx_node_name"):
      case SnapshotKey("fx_node_target"):
      case SnapshotKey("fx_original_trace"): heap_.Release(&items[i + 1]); break;
      default:
        CountUnknownKey("a frame", items[i], heap_.position(*slot));
        heap_.Release(&items[i + 1]);
    }
    if (!status.ok()) return status;
  }
  const size_t frames = trace_->stacks.frame_count();
  *index = trace_->stacks.InternFrame(frame);
  if (trace_->stacks.frame_count() != frames) stack_memory_ += kFrameMemory;
  const Value record = Value::Record(kFrame, *index);
  heap_.Replace(*slot, record);
  *slot = record;
  return absl::OkStatus();
}

// Reads the history of PyTorch 2.0: a list of {addr, real_size, frames}, newest first.
absl::Status SnapshotRecords::TakeHistory(Value* slot, uint32_t* stack) {
  const Value list = *slot = heap_.Resolve(*slot);
  if (!heap_.is(list, Type::kList)) return heap_.Expected("a list (history)", list);
  for (Value& item : heap_.items(list)) {
    item = heap_.Resolve(item);
    if (!heap_.is(item, Type::kDict)) return heap_.Expected("a dict in the history", item);
    Value* const frames = heap_.Find(item, "frames");
    if (frames == nullptr) continue;
    RETURN_IF_ERROR(TakeStack(frames, stack));
    break;
  }
  heap_.Release(slot);
  return absl::OkStatus();
}

absl::Status SnapshotRecords::TakePool(Value* slot, uint16_t* pool) {
  *slot = heap_.Resolve(*slot);
  if (slot->is_record(kPool)) {
    *pool = static_cast<uint16_t>(slot->index());
    return absl::OkStatus();
  }
  if (!heap_.is_sequence(*slot) || heap_.items(*slot).size() != 2) {
    return heap_.Expected("a pair of integers", *slot);
  }
  const absl::Span<Value> pair = heap_.items(*slot);
  PoolId id;
  RETURN_IF_ERROR(TakeInteger(pair[0], &id.first));
  RETURN_IF_ERROR(TakeInteger(pair[1], &id.second));
  auto known = pool_index_.find(id);
  if (known == pool_index_.end()) {
    if (trace_->pools.size() > 0xffff) {
      return absl::InvalidArgumentError("expected at most 65536 pools, found more");
    }
    known = pool_index_.emplace(id, static_cast<uint16_t>(trace_->pools.size())).first;
    trace_->pools.push_back(id);
  }
  *pool = known->second;
  const Value record = Value::Record(kPool, *pool);
  heap_.Replace(*slot, record);
  *slot = record;
  return absl::OkStatus();
}

absl::Status SnapshotRecords::TakeInteger(Value value, uint64_t* integer) const {
  if (value.is(Kind::kInt) && value.inline_int() >= 0) {  // almost always
    *integer = static_cast<uint64_t>(value.inline_int());
    return absl::OkStatus();
  }
  const std::optional<WideInt> wide = heap_.AsInteger(value);
  if (!wide.has_value() || wide->negative) {
    return heap_.Expected("an integer from 0 to 2^64-1", value);
  }
  *integer = wide->bits;
  return absl::OkStatus();
}

absl::Status SnapshotRecords::TakeSigned(Value value, int64_t* integer) const {
  const std::optional<WideInt> wide = heap_.AsInteger(value);
  if (!wide.has_value() || (!wide->negative && (wide->bits >> 63) != 0)) {
    return heap_.Expected("an integer of 64 bits", value);
  }
  *integer = static_cast<int64_t>(wide->bits);
  return absl::OkStatus();
}

absl::Status SnapshotRecords::TakeBool(Value value, bool* flag) const {
  if (!value.is(Kind::kTrue) && !value.is(Kind::kFalse)) {
    return heap_.Expected("True or False", value);
  }
  *flag = value.is(Kind::kTrue);
  return absl::OkStatus();
}

absl::Status SnapshotRecords::TakeText(Value value, uint32_t* text) {
  constexpr uint32_t kUnseen = 0xffffffff;
  if (!value.is(Kind::kString)) return heap_.Expected("a text", value);
  if (value.index() >= text_of_string_.size()) {
    text_of_string_.resize(heap_.strings().size(), kUnseen);
  }
  uint32_t& known = text_of_string_[value.index()];
  if (known == kUnseen) known = trace_->strings.Intern(Utf8(heap_.strings()[value.index()]));
  *text = known;
  return absl::OkStatus();
}

uint32_t SnapshotRecords::AddStream(uint64_t handle) {
  const auto [it, inserted] =
      stream_index_.try_emplace(handle, static_cast<uint32_t>(streams_.size()));
  if (inserted) streams_.push_back(handle);
  return it->second;
}

std::string SnapshotRecords::ProblemOf(Tag tag, uint32_t index) const {
  for (const auto& [record, problem] : problems_) {
    if (record == Value::Record(tag, index)) return problem;
  }
  return "a field has no usable value, like earlier ones";
}

void SnapshotRecords::CountUnknownKey(std::string_view where, Value key, uint64_t position) {
  std::string name =
      key.is(Kind::kString) ? Utf8(heap_.strings()[key.index()]) : heap_.Describe(key);
  if (name.size() > 80) name = StrCat(CutText(name, 80), "...");
  std::pair<std::string, std::string> place(where, std::move(name));
  if (unknown_keys_.size() >= kDistinctUnknownKeys && !unknown_keys_.contains(place)) {
    place.second = "(and others)";
  }
  UnknownKey& unknown = unknown_keys_[std::move(place)];
  if (unknown.count++ == 0) unknown.first = position;
}

void SnapshotRecords::ReportUnknownKeys() {
  for (const auto& [key, seen] : unknown_keys_) {
    trace_->diagnostics.Add(DiagnosticKind::kUnknownKey, seen.first,
                            StrCat("key '", key.second, "' in ", key.first), seen.count);
  }
  unknown_keys_.clear();
}

}  // namespace memreplay
