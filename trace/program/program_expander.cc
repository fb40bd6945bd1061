#include "trace/program/program_expander.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "trace/formats/flat/flat_records.h"
#include "trace/value/strings.h"

namespace memreplay::program {
namespace {

using Kind = Operation::Kind;

// The name of the phase after one ends and no other is open.
constexpr std::string_view kOutsidePhases = "-";

Event MarkEvent(MarkKind kind, uint32_t text) {
  Event event;
  event.set_mark(kind);
  event.stream = ProgramExpander::kNoStream;
  event.text_or_stack = text;
  return event;
}

}  // namespace

ProgramExpander::ProgramExpander(const ProgramCode* code, StringTable* strings, StackTable* stacks)
    : code_(*code),
      strings_(*strings),
      stacks_(*stacks),
      new_strings_(strings),
      new_stacks_(stacks),
      random_(code->seed),
      steps_ahead_(kStepsPerEvent * std::min(code->max_events, kEventsAhead)) {
  variables_.resize(code_.main_slots);
  text_numbers_.assign(code_.texts.size(), kNone);
  stack_numbers_.assign(code_.labels.size(), kNone);
  for (const auto& [size, name] :
       {std::pair{code_.context, std::string_view("CUDA context")},
        std::pair{code_.other_processes, std::string_view("other processes")}}) {
    if (size == Bytes(0)) continue;
    Emit({.kind = EventKind::kOutsideAlloc,
          .size = size,
          .stream = kNoStream,
          .text_or_stack = Interned(name)});
  }
}

ProgramExpander ProgramExpander::Again() const {
  ProgramExpander again = *this;
  again.new_strings_ = nullptr;
  again.new_stacks_ = nullptr;
  return again;
}

size_t ProgramExpander::bytes() const {
  return sizeof(*this) + queue_.capacity() * sizeof(Event) +
         variables_.capacity() * sizeof(int64_t) + frames_.capacity() * sizeof(Frame) +
         (live_.capacity() + outside_.capacity()) * (sizeof(Key) + sizeof(Live)) +
         cuda_events_.capacity() * (sizeof(Key) + sizeof(uint64_t)) +
         (phases_.capacity() + text_numbers_.capacity() + stack_numbers_.capacity()) *
             sizeof(uint32_t) +
         scratch_.capacity() + (load_ ? load_->bytes() : 0);
}

uint32_t ProgramExpander::Interned(std::string_view text) {
  return new_strings_ != nullptr ? new_strings_->Intern(text) : *strings_.Find(text);
}

bool ProgramExpander::Fail(std::string_view expected, std::string_view found) {
  const std::string& place = code_.places[place_];
  status_ = absl::InvalidArgumentError(
      StrCat(place, place.empty() ? "" : ": ", "expected ", expected, ", found ", found));
  return false;
}

bool ProgramExpander::Next(Event* event) {
  while (true) {
    if (queue_at_ < queue_.size()) {
      *event = queue_[queue_at_++];
      return true;
    }
    queue_.clear();
    queue_at_ = 0;
    if (ended_ || !status_.ok()) return false;
    const Operation& op = code_.operations[at_++];
    place_ = op.place;
    if (++steps_ > steps_ahead_ + kStepsPerEvent * events_) {
      Fail(StrCat("at most ", steps_ahead_, " statements and ", kStepsPerEvent,
                  " more for each event"),
           StrCat("more, and ", events_, " events"));
      return false;
    }
    // An operation that fails has no events.
    if (!Execute(op)) queue_.clear();
  }
}

// Returns whether so many more events are allowed. What is known to have more fails before its
// first.
bool ProgramExpander::HasRoomFor(uint64_t events) {
  return events <= code_.max_events - events_ ||
         Fail(StrCat("at most ", code_.max_events, " events (max_events)"), "more");
}

// Emits an event, preceded by the mark of a new phase if the event is its first.
bool ProgramExpander::Emit(const Event& event) {
  const uint64_t count = phase_changed_ ? 2 : 1;
  if (!HasRoomFor(count)) return false;
  events_ += count;
  if (std::exchange(phase_changed_, false)) {
    const uint32_t path = phases_.back();
    queue_.push_back(
        MarkEvent(MarkKind::kPhase, path == kNoText ? Interned(kOutsidePhases) : path));
  }
  queue_.push_back(event);
  return true;
}

void ProgramExpander::VisitLive(const std::function<void(const Live&)>& visit) const {
  std::vector<Live> all;
  all.reserve(live_.size());
  // In any order.
  for (const auto& [key, live] : live_) all.push_back(live);
  std::sort(all.begin(), all.end(),
            [](const Live& a, const Live& b) { return a.handle < b.handle; });
  for (const Live& live : all) visit(live);
}

// Values.

bool ProgramExpander::Value(uint32_t expression, int64_t* value) {
  Fault fault;
  if (code_.expressions[expression].Evaluate(variables_.data() + base_, value, &fault)) {
    return true;
  }
  return Fail(Expected(fault),
              StrCat(Found(fault), " in \"", code_.expression_texts[expression], "\""));
}

bool ProgramExpander::ValueAtLeast(uint32_t expression, int64_t least, std::string_view what,
                                   int64_t* value) {
  if (!Value(expression, value)) return false;
  return *value >= least || Fail(StrCat(what, " of at least ", least), StrCat(*value));
}

bool ProgramExpander::Stream(uint32_t expression, uint32_t otherwise, uint32_t* stream) {
  *stream = otherwise;
  if (expression == kNone) return true;
  int64_t value = 0;
  if (!Value(expression, &value)) return false;
  if (value < 0 || value >= code_.streams) {
    return Fail(StrCat("one of ", code_.streams, " streams"), StrCat(value));
  }
  *stream = static_cast<uint32_t>(value);
  return true;
}

bool ProgramExpander::Text(uint32_t text, uint32_t* string) {
  if (text_numbers_[text] != kNone) {
    *string = text_numbers_[text];
    return true;
  }
  const TextTemplate& pieces = code_.texts[text];
  scratch_.clear();
  for (const TextTemplate::Piece& piece : pieces.pieces) {
    scratch_ += piece.literal;
    if (piece.value == kNone) continue;
    int64_t value = 0;
    if (!Value(piece.value, &value)) return false;
    StrAppend(&scratch_, value);
  }
  const size_t before = strings_.size();
  *string = Interned(scratch_);
  if (strings_.size() != before) text_memory_ += scratch_.size() + kTextMemory;
  if (text_memory_ > kMaxTexts) {
    return Fail(StrCat("at most ", kMaxTexts >> 20, " MiB of distinct texts"), "more");
  }
  if (pieces.is_constant()) text_numbers_[text] = *string;
  return true;
}

bool ProgramExpander::Label(uint32_t label, uint32_t* stack) {
  if (stack_numbers_[label] != kNone) {
    *stack = stack_numbers_[label];
    return true;
  }
  const LabelTemplate& parts = code_.labels[label];
  bool is_constant = true;
  const auto text = [&](uint32_t part, uint32_t* string) {
    *string = kNoText;
    if (part == kNone) return true;
    is_constant = is_constant && code_.texts[part].is_constant();
    return Text(part, string);
  };
  std::array<uint32_t, 2> frames;
  size_t count = 0;
  uint32_t name = kNoText, tag = kNoText, tensor = kNoText;
  if (!text(parts.name, &name) || !text(parts.tag, &tag) || !text(parts.tensor, &tensor)) {
    return false;
  }
  const auto frame = [this](const memreplay::Frame& wanted) {
    return new_stacks_ != nullptr ? new_stacks_->InternFrame(wanted) : *stacks_.FindFrame(wanted);
  };
  frames[count++] = frame({tag, name, 0});
  if (tensor != kNoText) frames[count++] = frame({Interned(kTensorFrame), tensor, 0});
  const auto all = absl::MakeConstSpan(frames.data(), count);
  *stack = new_stacks_ != nullptr ? new_stacks_->InternStack(all) : *stacks_.FindStack(all);
  if (is_constant) stack_numbers_[label] = *stack;
  return true;
}

bool ProgramExpander::DrawNumber(uint32_t distribution, int64_t* value) {
  const DistributionCode& code = code_.distributions[distribution];
  Draw draw = code.draw;
  draw.min = draw.kind == Draw::Kind::kLogUniform ? 1 : 0;
  if (code.round != kNone && !ValueAtLeast(code.round, 1, "round", &draw.round)) return false;
  if (code.min != kNone && !ValueAtLeast(code.min, draw.min, "min", &draw.min)) return false;
  if (code.max != kNone && !ValueAtLeast(code.max, draw.min, "max", &draw.max)) return false;
  switch (code.kind) {
    case DistributionCode::Kind::kDraw: *value = DrawFrom(draw, random_); return true;
    case DistributionCode::Kind::kChoice:
      if (!Value(code.choices[random_.Weighted(code.weights)], value)) return false;
      break;
    case DistributionCode::Kind::kMix:
      if (!DrawNumber(code.choices[random_.Weighted(code.weights)], value)) return false;
      break;
  }
  // A choice without limits may be negative.
  if (code.min == kNone && code.round == kNone) draw.min = std::min(draw.min, *value);
  *value = RoundAndLimit(draw, *value);
  return true;
}

// Handles.

bool ProgramExpander::Resolve(uint32_t handle, Key* key) {
  const HandleTemplate& name = code_.handles[handle];
  key->name = name.name;
  for (size_t i = 0; i < name.indexes.size(); ++i) {
    if (!Value(name.indexes[i], &key->indexes[i])) return false;
  }
  return true;
}

// Returns a handle as text, such as "act[3][0]".
std::string ProgramExpander::Spell(uint32_t handle, const Key& key) const {
  const HandleTemplate& name = code_.handles[handle];
  std::string spelt;
  size_t index = 0;
  for (size_t at = 0; at < name.text.size(); ++at) {
    spelt += name.text[at];
    if (name.text[at] != '[') continue;
    StrAppend(&spelt, key.indexes[index++]);
    at = name.text.find(']', at) - 1;
  }
  return spelt;
}

bool ProgramExpander::FindLive(uint32_t handle, Key* key, Live** live) {
  if (!Resolve(handle, key)) return false;
  const auto it = live_.find(*key);
  if (it == live_.end()) {
    return Fail(StrCat(Spell(handle, *key), " to be allocated"), "that it is not");
  }
  *live = &it->second;
  return true;
}

// Operations.

// Returns the allocation that `event`, which is about to be emitted, begins.
ProgramExpander::Live ProgramExpander::NewLive(Event* event, uint32_t name) {
  event->kind = EventKind::kAlloc;
  event->id = next_id_++;
  event->address = Address(++last_handle_);
  return {last_handle_,
          event->size,
          event->stream,
          phases_.back(),
          name,
          event->id,
          events_ + (phase_changed_ ? 1 : 0)};
}

bool ProgramExpander::Execute(const Operation& op) {
  switch (op.kind) {
    case Kind::kAlloc:
    case Kind::kFree:
    case Kind::kMove:
    case Kind::kUse:
    case Kind::kRetag:
    case Kind::kOutside:
    case Kind::kOutsideFree: return Memory(op);
    case Kind::kSet: return Value(op.value, &variables_[base_ + op.slot]);
    case Kind::kDraw: return DrawNumber(op.other, &variables_[base_ + op.slot]);
    case Kind::kPhaseBegin:
    case Kind::kPhaseEnd: return Phase(op);
    case Kind::kLoopBegin: return LoopBegin(op);
    case Kind::kLoopNext: {
      int64_t* loop = &variables_[base_ + op.slot];
      if (--loop[1] == 0) return true;
      loop[0] += loop[2];
      at_ = op.target;
      return true;
    }
    case Kind::kPick:
      return Value(op.value + static_cast<uint32_t>(variables_[base_ + op.other]),
                   &variables_[base_ + op.slot]);
    case Kind::kBranch: {
      int64_t condition = 0;
      if (!Value(op.value, &condition)) return false;
      if (condition == 0) at_ = op.target;
      return true;
    }
    case Kind::kJump: at_ = op.target; return true;
    case Kind::kCall: return Call(op);
    case Kind::kReturn:
      if (frames_.empty()) {
        ended_ = true;
        return true;
      }
      variables_.resize(base_);
      base_ = frames_.back().variables;
      at_ = frames_.back().return_to;
      frames_.pop_back();
      return true;
    case Kind::kRandom: return Random(op);
    default: return Synchronise(op);
  }
}

bool ProgramExpander::Memory(const Operation& op) {
  Key key;
  Event event;
  switch (op.kind) {
    case Kind::kAlloc:
    case Kind::kOutside: {
      const bool is_outside = op.kind == Kind::kOutside;
      int64_t size = 0;
      if (!Resolve(op.handle, &key) || !ValueAtLeast(op.value, 0, "bytes", &size) ||
          !(is_outside
                ? Text(op.other, &event.text_or_stack)
                : Stream(op.stream, 0, &event.stream) && Label(op.label, &event.text_or_stack))) {
        return false;
      }
      const auto [it, is_new] = (is_outside ? outside_ : live_).try_emplace(key);
      if (!is_new) return Fail(StrCat(Spell(op.handle, key), " to be free"), "that it is live");
      event.size = Bytes(static_cast<uint64_t>(size));
      if (!is_outside) {
        it->second = NewLive(&event, op.handle);
        return Emit(event);
      }
      it->second.handle = ++last_handle_;
      it->second.size = event.size;
      event.kind = EventKind::kOutsideAlloc;
      event.address = Address(last_handle_);
      event.stream = kNoStream;
      return Emit(event);
    }
    case Kind::kOutsideFree: {
      if (!Resolve(op.handle, &key)) return false;
      const auto it = outside_.find(key);
      if (it == outside_.end()) {
        return Fail(StrCat(Spell(op.handle, key), " to be taken"), "that it is not");
      }
      event = {.kind = EventKind::kOutsideFree,
               .address = Address(it->second.handle),
               .size = it->second.size,
               .stream = kNoStream};
      outside_.erase(it);
      return Emit(event);
    }
    default: break;
  }
  Live* live = nullptr;
  if (!FindLive(op.handle, &key, &live)) return false;
  event.address = Address(live->handle);
  event.id = live->id;
  switch (op.kind) {
    case Kind::kFree:
      if (!Stream(op.stream, live->stream, &event.stream)) return false;
      event.kind = EventKind::kFree;
      live_.erase(key);
      return Emit(event);
    case Kind::kUse:
      if (!Stream(op.stream, 0, &event.stream)) return false;
      event.kind = EventKind::kRecordStream;
      return Emit(event);
    case Kind::kRetag: {
      uint32_t text = kNoText;
      if (!Text(op.other, &text)) return false;
      Event mark = MarkEvent(MarkKind::kRetag, text);
      mark.address = event.address;
      mark.id = event.id;
      return Emit(mark);
    }
    default: break;
  }
  // A move frees what the target held.
  Key target;
  if (!Resolve(op.other, &target)) return false;
  if (target == key) return true;
  Live moved = *live;
  moved.name = op.other;
  live_.erase(key);
  const auto [it, is_new] = live_.try_emplace(target);
  const Live before = std::exchange(it->second, moved);
  if (is_new) return true;
  event.kind = EventKind::kFree;
  event.address = Address(before.handle);
  event.id = before.id;
  event.stream = before.stream;
  return Emit(event);
}

bool ProgramExpander::Synchronise(const Operation& op) {
  Event event;
  event.stream = kNoStream;
  switch (op.kind) {
    case Kind::kEvent:
    case Kind::kWait: {
      Key key;
      if (!Resolve(op.handle, &key) || !Stream(op.stream, 0, &event.stream)) return false;
      const bool records = op.kind == Kind::kEvent;
      const auto it = cuda_events_.find(key);
      if (it == cuda_events_.end() && !records) {
        return Fail(StrCat("the event ", Spell(op.handle, key), " to be recorded"),
                    "that it is not");
      }
      const uint64_t number =
          records ? cuda_events_.try_emplace(key, cuda_events_.size() + 1).first->second
                  : it->second;
      event.set_mark(records ? MarkKind::kEventRecord : MarkKind::kStreamWait);
      event.address = Address(number);
      return Emit(event);
    }
    case Kind::kDone:
      event.kind = EventKind::kStreamDone;
      return Stream(op.stream, 0, &event.stream) && Emit(event);
    case Kind::kMark: event.set_mark(MarkKind::kLabel); break;
    case Kind::kSettings: event.kind = EventKind::kSettings; break;
    case Kind::kFraction: event.kind = EventKind::kFraction; break;
    case Kind::kEmptyCache: event.kind = EventKind::kEmptyCache; return Emit(event);
    case Kind::kResetPeak: event.kind = EventKind::kResetPeak; return Emit(event);
    case Kind::kResetAccumulated: event.kind = EventKind::kResetAccumulated; return Emit(event);
    case Kind::kFailNext: {
      int64_t count = 0;
      if (!ValueAtLeast(op.value, 0, "a count", &count)) return false;
      event.set_fail_count(static_cast<uint64_t>(count));
      return Emit(event);
    }
    default:
      event.pool = static_cast<uint16_t>(op.other + 1);
      event.kind = op.kind == Kind::kPoolBegin    ? EventKind::kPoolBegin
                   : op.kind == Kind::kPoolEnd    ? EventKind::kPoolEnd
                   : op.kind == Kind::kPoolForget ? EventKind::kPoolForget
                                                  : EventKind::kPoolRelease;
      if (op.kind == Kind::kPoolCreate) event.set_pool_flags(op.value);
      return Emit(event);
  }
  return Text(op.other, &event.text_or_stack) && Emit(event);
}

bool ProgramExpander::LoopBegin(const Operation& op) {
  int64_t start = 0, stop = 0, step = 0;
  if (!Value(op.value, &start) || !Value(op.value + 1, &stop)) return false;
  if (op.other == kNone) {
    step = start <= stop ? 1 : -1;
  } else if (!Value(op.value + 2, &step)) {
    return false;
  }
  if (step == 0) return Fail("a step other than 0", "0");
  const bool is_empty = step > 0 ? start >= stop : start <= stop;
  if (is_empty) {
    at_ = op.target;
    return true;
  }
  const uint64_t distance = step > 0 ? static_cast<uint64_t>(stop) - static_cast<uint64_t>(start)
                                     : static_cast<uint64_t>(start) - static_cast<uint64_t>(stop);
  const uint64_t stride = step > 0 ? static_cast<uint64_t>(step) : 0 - static_cast<uint64_t>(step);
  const uint64_t count = (distance - 1) / stride + 1;
  if (count > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
    return Fail("at most 2^63 - 1 turns", "more");
  }
  uint64_t events = 0;  // at least
  if (__builtin_mul_overflow(count, uint64_t{op.label}, &events)) {
    events = std::numeric_limits<uint64_t>::max();
  }
  if (!HasRoomFor(events)) return false;
  int64_t* loop = &variables_[base_ + op.slot];
  loop[0] = start;
  loop[1] = static_cast<int64_t>(count);
  loop[2] = step;
  return true;
}

bool ProgramExpander::Call(const Operation& op) {
  if (frames_.size() == kMaxCallDepth) {
    return Fail(StrCat("at most ", kMaxCallDepth, " calls inside each other"), "another");
  }
  const CallCode& call = code_.calls[op.other];
  const size_t base = variables_.size();
  variables_.resize(base + call.slots);
  for (size_t i = 0; i < call.arguments.size(); ++i) {
    if (!Value(call.arguments[i], &variables_[base + i])) return false;
  }
  frames_.push_back({at_, base_});
  base_ = base;
  at_ = op.target;
  return true;
}

bool ProgramExpander::Phase(const Operation& op) {
  phase_changed_ = true;
  if (op.kind == Kind::kPhaseEnd) {
    phases_.pop_back();
    return true;
  }
  uint32_t name = kNoText;
  if (!Text(op.other, &name)) return false;
  const uint32_t outer = phases_.back();
  const size_t outer_length = outer == kNoText ? 0 : strings_[outer].size();
  if (outer_length + strings_[name].size() > kMaxPhasePath) {
    return Fail(StrCat("a path of phases of at most ", kMaxPhasePath, " bytes"),
                StrCat(outer_length + 1 + strings_[name].size()));
  }
  phases_.push_back(outer == kNoText ? name
                                     : Interned(StrCat(strings_[outer], ".", strings_[name])));
  return true;
}

// Executes one step: frees, then an allocation and the requests around it. The operation repeats
// until the load has ended.
bool ProgramExpander::Random(const Operation& op) {
  const RandomLoadCode& code = code_.random_loads[op.other];
  if (!load_) {
    int64_t ops = 0, target = std::numeric_limits<int64_t>::max(), streams = 1;
    if (!ValueAtLeast(code.ops, 0, "ops", &ops)) return false;
    if (code.live_target != kNone && !ValueAtLeast(code.live_target, 0, "live_target", &target)) {
      return false;
    }
    if (code.streams != kNone && !ValueAtLeast(code.streams, 1, "streams", &streams)) return false;
    if (streams > code_.streams) {
      return Fail(StrCat("at most ", code_.streams, " streams"), StrCat(streams));
    }
    if (!HasRoomFor(static_cast<uint64_t>(ops))) return false;
    load_.emplace(ops, target, streams);
  }
  const auto free = [&] {
    const RandomLoad::Block block = load_->Free();
    const auto it = live_.find(Key{kNone, {static_cast<int64_t>(block.handle)}});
    const AllocationId id = it->second.id;
    live_.erase(it);
    return Emit({.kind = EventKind::kFree,
                 .id = id,
                 .address = Address(block.handle),
                 .stream = block.stream});
  };
  if (load_->done()) {
    if (!code.keep && !load_->empty()) {
      --at_;  // repeat
      return free();
    }
    load_.reset();
    return true;
  }
  --at_;
  RandomLoad::Block block;
  int64_t lifetime = 0;
  if (!DrawNumber(code.size, &block.size) || !DrawNumber(code.lifetime, &lifetime)) return false;
  if (block.size < 0) return Fail("a size of at least 0", StrCat(block.size));
  block.due = load_->op() + static_cast<uint64_t>(std::max<int64_t>(lifetime, 1));
  block.stream = static_cast<uint32_t>(random_.Between(0, load_->streams() - 1));
  while (load_->MustFree(block.size)) {
    if (!free()) return false;
  }
  if (code.empty_cache_p > 0 && random_.Unit() < code.empty_cache_p &&
      !Emit({.kind = EventKind::kEmptyCache, .stream = kNoStream})) {
    return false;
  }
  Event event = {.size = Bytes(static_cast<uint64_t>(block.size)), .stream = block.stream};
  if (!Label(code.label, &event.text_or_stack)) return false;
  const Live live = NewLive(&event, kNone);
  block.handle = live.handle;
  load_->Add(block);
  live_[Key{kNone, {static_cast<int64_t>(block.handle)}}] = live;
  if (!Emit(event)) return false;
  if (code.record_stream_p > 0 && load_->streams() > 1 && random_.Unit() < code.record_stream_p) {
    const int64_t other = random_.Between(1, load_->streams() - 1);
    return Emit({.kind = EventKind::kRecordStream,
                 .id = event.id,
                 .address = event.address,
                 .stream = static_cast<uint32_t>((block.stream + other) % load_->streams())});
  }
  return true;
}

}  // namespace memreplay::program
