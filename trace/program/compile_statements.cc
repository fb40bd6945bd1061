#include <algorithm>
#include <array>

#include "absl/algorithm/container.h"
#include "trace/bytes/json_scanner.h"
#include "trace/program/compiler.h"

namespace memreplay::program {
namespace {

using google::protobuf::FieldDescriptor;
using S = proto::Statement;
using Kind = Operation::Kind;

// The first field of a Statement that is not a verb.
constexpr int kFirstDetail = S::kBytesFieldNumber;

}  // namespace

// Which fields of a Statement may be combined, a row for each verb; 0 is none.
struct Compiler::Verb {
  int field;
  Kind kind;  // of the operation that it becomes, or of the first one
  std::array<int, 1> required = {};
  std::array<int, 7> optional = {};
};

const Compiler::Verb Compiler::kVerbs[] = {
    {S::kAllocFieldNumber,
     Kind::kAlloc,
     {S::kBytesFieldNumber},
     {S::kTagFieldNumber, S::kSiteFieldNumber, S::kDtypeFieldNumber, S::kShapeFieldNumber,
      S::kSavedFieldNumber, S::kStreamFieldNumber}},
    {S::kTempFieldNumber,
     Kind::kAlloc,
     {S::kBytesFieldNumber},
     {S::kTagFieldNumber, S::kSiteFieldNumber, S::kDtypeFieldNumber, S::kShapeFieldNumber,
      S::kSavedFieldNumber, S::kStreamFieldNumber, S::kBodyFieldNumber}},
    {S::kFreeFieldNumber, Kind::kFree, {}, {S::kStreamFieldNumber}},
    {S::kMoveFieldNumber, Kind::kMove, {S::kToFieldNumber}, {}},
    {S::kUseFieldNumber, Kind::kUse, {S::kStreamFieldNumber}, {}},
    {S::kRetagFieldNumber, Kind::kRetag, {S::kTagFieldNumber}, {}},
    {S::kLetFieldNumber, Kind::kSet, {}, {S::kValueFieldNumber, S::kFromFieldNumber}},
    {S::kPhaseFieldNumber, Kind::kPhaseBegin, {}, {S::kBodyFieldNumber}},
    {S::kRepeatFieldNumber, Kind::kLoopBegin, {}, {S::kIndexFieldNumber, S::kBodyFieldNumber}},
    {S::kForFieldNumber, Kind::kLoopBegin, {S::kRangeFieldNumber}, {S::kBodyFieldNumber}},
    {S::kForeachFieldNumber, Kind::kLoopBegin, {S::kValuesFieldNumber}, {S::kBodyFieldNumber}},
    {S::kIfFieldNumber, Kind::kBranch, {}, {S::kThenFieldNumber, S::kElseFieldNumber}},
    {S::kCallFieldNumber, Kind::kCall, {}, {S::kWithFieldNumber}},
    {S::kEventFieldNumber, Kind::kEvent, {}, {S::kStreamFieldNumber}},
    {S::kWaitFieldNumber, Kind::kWait, {}, {S::kStreamFieldNumber}},
    {S::kDoneFieldNumber, Kind::kDone, {}, {}},
    {S::kEmptyCacheFieldNumber, Kind::kEmptyCache, {}, {}},
    {S::kMarkFieldNumber, Kind::kMark, {}, {}},
    {S::kResetFieldNumber, Kind::kResetPeak, {}, {}},
    {S::kConfFieldNumber, Kind::kSettings, {}, {}},
    {S::kFractionFieldNumber, Kind::kFraction, {}, {}},
    {S::kFailNextFieldNumber, Kind::kFailNext, {}, {}},
    {S::kOutsideFieldNumber, Kind::kOutside, {S::kBytesFieldNumber}, {S::kSiteFieldNumber}},
    {S::kOutsideFreeFieldNumber, Kind::kOutsideFree, {}, {}},
    {S::kPoolFieldNumber, Kind::kPoolBegin, {}, {S::kBodyFieldNumber}},
    {S::kPoolCreateFieldNumber,
     Kind::kPoolCreate,
     {},
     {S::kServesOnOomFieldNumber, S::kNoSplitFieldNumber}},
    {S::kPoolForgetFieldNumber, Kind::kPoolForget, {}, {}},
    {S::kPoolReleaseFieldNumber, Kind::kPoolRelease, {}, {}},
    {S::kRandomFieldNumber, Kind::kRandom, {}, {}},
};

Operation& Compiler::Emit(Kind kind, const Where& where, int field) {
  // The place is created once for all operations of the statement.
  Operation operation;
  operation.kind = kind;
  operation.place = static_cast<uint32_t>(code_.places.size());
  code_.places.push_back(Place(where, field, -1));
  code_.operations.push_back(operation);
  return code_.operations.back();
}

bool Compiler::Block(const Where& where, int field,
                     const google::protobuf::RepeatedPtrField<S>& statements) {
  const size_t visible = variables_.size();
  for (int i = 0; i < statements.size(); ++i) {
    if (!Statement(Inside(where, statements[i], field, i), statements[i])) return false;
  }
  variables_.erase(variables_.begin() + static_cast<std::ptrdiff_t>(visible), variables_.end());
  return true;
}

const Compiler::Verb* Compiler::FindVerb(const Where& where, const S& statement) {
  const auto wrong = [&](int field, std::string_view expected, std::string_view found) {
    Wrong(where, field, expected, found);
    return nullptr;
  };
  std::vector<const FieldDescriptor*> set;
  statement.GetReflection()->ListFields(statement, &set);
  const Verb* verb = nullptr;
  for (const FieldDescriptor* f : set) {
    if (f->number() >= kFirstDetail) continue;
    if (verb != nullptr) {
      return wrong(f->number(), "one verb in a statement",
                   StrCat(std::string_view(Field(where, verb->field)->name()), " and ",
                          std::string_view(f->name())));
    }
    verb = std::find_if(std::begin(kVerbs), std::end(kVerbs),
                        [f](const Verb& row) { return row.field == f->number(); });
  }
  if (verb == nullptr) {
    return wrong(0, "a verb (alloc, free, repeat ...)",
                 set.empty() ? std::string("an empty statement")
                             : StrCat("only ", std::string_view(set[0]->name())));
  }
  const auto has = [](const auto& fields, int field) {
    return absl::c_find(fields, field) != fields.end();
  };
  const std::string name(Field(where, verb->field)->name());
  for (const FieldDescriptor* f : set) {
    if (f->number() >= kFirstDetail && !has(verb->required, f->number()) &&
        !has(verb->optional, f->number())) {
      return wrong(f->number(), StrCat("what goes with ", name), std::string_view(f->name()));
    }
  }
  for (const int other : verb->required) {
    if (other != 0 && absl::c_none_of(set, [&](const auto* f) { return f->number() == other; })) {
      return wrong(verb->field, StrCat(std::string_view(Field(where, other)->name()), " with it"),
                   "none");
    }
  }
  return verb;
}

bool Compiler::Statement(const Where& where, const S& s) {
  const Verb* const found = FindVerb(where, s);
  if (found == nullptr) return false;
  const int verb = found->field;
  switch (verb) {
    case S::kLetFieldNumber: return Let(where, s);
    case S::kRepeatFieldNumber:
    case S::kForFieldNumber:
    case S::kForeachFieldNumber: return Loop(where, s, verb);
    case S::kCallFieldNumber: return Call(where, s);
    case S::kPhaseFieldNumber: {
      uint32_t text = kNone;
      if (!Text(where, verb, s.phase(), &text)) return false;
      Emit(Kind::kPhaseBegin, where, verb).other = text;
      if (!Block(where, S::kBodyFieldNumber, s.body())) return false;
      Emit(Kind::kPhaseEnd, where, verb);
      return true;
    }
    case S::kPoolFieldNumber: {
      uint32_t pool = kNone;
      if (!Pool(where, verb, s.pool(), &pool)) return false;
      Emit(Kind::kPoolBegin, where, verb).other = pool;
      if (!Block(where, S::kBodyFieldNumber, s.body())) return false;
      Emit(Kind::kPoolEnd, where, verb).other = pool;
      return true;
    }
    case S::kIfFieldNumber: {
      uint32_t condition = kNone;
      if (!Value(where, verb, -1, s.if_(), &condition)) return false;
      const uint32_t branch = here();
      Emit(Kind::kBranch, where, verb).value = condition;
      if (!Block(where, S::kThenFieldNumber, s.then())) return false;
      const uint32_t jump = here();
      if (s.else__size() > 0) Emit(Kind::kJump, where, verb);
      code_.operations[branch].target = here();
      if (!Block(where, S::kElseFieldNumber, s.else_())) return false;
      if (s.else__size() > 0) code_.operations[jump].target = here();
      return true;
    }
    default: return Simple(where, s, *found);
  }
}

bool Compiler::Simple(const Where& where, const S& s, const Verb& verb) {
  Operation op;
  op.kind = verb.kind;
  const std::string text = Field(where, verb.field)->type() == FieldDescriptor::TYPE_STRING
                               ? s.GetReflection()->GetString(s, Field(where, verb.field))
                               : "";
  // What the verb itself says.
  bool ok = true;
  switch (op.kind) {
    case Kind::kDone: ok = Stream(where, verb.field, text, &op.stream); break;
    case Kind::kEmptyCache: break;
    case Kind::kFraction: {
      const std::optional<double> fraction = ParseJsonDouble(text);
      if (!fraction || *fraction < 0 || *fraction > 1) {
        return Wrong(where, verb.field, "a number from 0 to 1", Quote(text));
      }
      [[fallthrough]];
    }
    case Kind::kMark:
    case Kind::kSettings: ok = Text(where, verb.field, text, &op.other); break;
    case Kind::kResetPeak:
      if (text != "peak" && text != "accumulated") {
        return Wrong(where, verb.field, "\"peak\" or \"accumulated\"", Quote(text));
      }
      if (text != "peak") op.kind = Kind::kResetAccumulated;
      break;
    case Kind::kFailNext: ok = Value(where, verb.field, -1, text, &op.value); break;
    case Kind::kPoolCreate:
      op.value = static_cast<uint32_t>((s.serves_on_oom() ? uint64_t{kPoolUseOnOom} : 0) |
                                       (s.no_split() ? uint64_t{kPoolNoSplit} : 0));
      [[fallthrough]];
    case Kind::kPoolForget:
    case Kind::kPoolRelease: ok = Pool(where, verb.field, text, &op.other); break;
    case Kind::kRandom:
      ok = Random(Inside(where, s.random(), verb.field, -1), s.random(), &op.other);
      break;
    default: ok = Handle(where, verb.field, text, &op.handle); break;
  }
  // What goes with it.
  if (!ok ||
      (!s.stream().empty() && !Stream(where, S::kStreamFieldNumber, s.stream(), &op.stream)) ||
      !Optional(where, S::kBytesFieldNumber, s.bytes(), &op.value) ||
      (op.kind == Kind::kAlloc && !Label(where, s, text, &op.label)) ||
      (op.kind == Kind::kMove && !Handle(where, S::kToFieldNumber, s.to(), &op.other)) ||
      (op.kind == Kind::kRetag && !Text(where, S::kTagFieldNumber, s.tag(), &op.other)) ||
      (op.kind == Kind::kOutside &&
       !Text(where, S::kSiteFieldNumber, s.site().empty() ? text : s.site(), &op.other))) {
    return false;
  }
  const auto emit = [&] {
    Operation& emitted = Emit(op.kind, where, verb.field);
    op.place = emitted.place;
    emitted = op;
  };
  emit();
  if (verb.field == S::kTempFieldNumber) {
    if (!Block(where, S::kBodyFieldNumber, s.body())) return false;
    op.kind = Kind::kFree;
    op.stream = kNone;
    emit();
  }
  return true;
}

bool Compiler::Let(const Where& where, const S& s) {
  if (s.value().empty() == !s.has_from()) {
    return Wrong(where, S::kLetFieldNumber, "either value or from", s.has_from() ? "both" : "none");
  }
  uint32_t value = kNone;
  if (s.has_from()) {
    if (!Distribution(Inside(where, s.from(), S::kFromFieldNumber, -1), s.from(), 0, &value)) {
      return false;
    }
  } else if (!Value(where, S::kValueFieldNumber, -1, s.value(), &value)) {
    return false;
  }
  uint32_t slot = kNone;
  for (const Variable& variable : variables_) {
    if (variable.name != s.let()) continue;
    if (variable.is_index) {
      return Wrong(where, S::kLetFieldNumber, "a name that is no loop's index", Quote(s.let()));
    }
    slot = variable.slot;
  }
  if (slot == kNone && !Declare(where, S::kLetFieldNumber, -1, s.let(), false, &slot)) return false;
  Operation& op = Emit(s.has_from() ? Kind::kDraw : Kind::kSet, where, S::kLetFieldNumber);
  op.slot = slot;
  (s.has_from() ? op.other : op.value) = value;
  return true;
}

bool Compiler::Loop(const Where& where, const S& s, int verb) {
  // Start, stop and step are consecutive.
  uint32_t values[3] = {kNone, kNone, kNone};
  std::vector<uint32_t> picks;
  std::string index;
  int index_field = verb;
  if (verb == S::kRepeatFieldNumber) {
    values[0] = Add(Expression::Constant(0));
    if (!Value(where, verb, -1, s.repeat(), &values[1])) return false;
    values[2] = Add(Expression::Constant(1));
    index = s.index();
    index_field = S::kIndexFieldNumber;
  } else if (verb == S::kForFieldNumber) {
    index = s.for_();
    if (s.range_size() != 2 && s.range_size() != 3) {
      return Wrong(where, S::kRangeFieldNumber, "start, stop and, maybe, step",
                   StrCat(s.range_size(), " values"));
    }
    for (int i = 0; i < s.range_size(); ++i) {
      if (!Value(where, S::kRangeFieldNumber, i, s.range(i), &values[i])) return false;
    }
  } else {
    index = s.foreach ();
    for (int i = 0; i < s.values_size(); ++i) {
      picks.push_back(kNone);
      if (!Value(where, S::kValuesFieldNumber, i, s.values(i), &picks.back())) return false;
    }
    values[0] = Add(Expression::Constant(0));
    values[1] = Add(Expression::Constant(s.values_size()));
    values[2] = Add(Expression::Constant(1));
  }
  const size_t visible = variables_.size();
  // The slots hold the counter, the remaining iterations and the step; foreach also has its
  // variable.
  const uint32_t counter = slots_;
  slots_ += 3;
  if (verb == S::kForeachFieldNumber) {
    uint32_t slot = 0;
    if (!Declare(where, verb, -1, index, true, &slot)) return false;
  } else if (!index.empty()) {
    if (!IsName(index) || constants_.contains(index)) {
      return Wrong(where, index_field, "a name that is no parameter", Quote(index));
    }
    variables_.push_back({index, counter, true});
  }
  const uint32_t begin = here();
  const uint32_t first = AddCopies(values);  // the operation requires consecutive values
  Operation& loop = Emit(Kind::kLoopBegin, where, verb);
  loop.slot = counter;
  loop.value = first;
  loop.other = values[2] == kNone ? kNone : 0;  // kNone: the step leads towards the stop
  const uint32_t body = here();
  if (verb == S::kForeachFieldNumber) {
    const uint32_t first_pick = AddCopies(picks);
    Operation& pick = Emit(Kind::kPick, where, verb);
    pick.slot = variables_.back().slot;
    pick.value = first_pick;
    pick.other = counter;
  }
  if (!Block(where, S::kBodyFieldNumber, s.body())) return false;
  Operation& next = Emit(Kind::kLoopNext, where, verb);
  next.slot = counter;
  next.target = body;
  code_.operations[begin].target = here();
  code_.operations[begin].label = EventsAtLeast(body);
  variables_.erase(variables_.begin() + static_cast<std::ptrdiff_t>(visible), variables_.end());
  return true;
}

// Returns how many events the operations from `from` on have at least, without those of loops, of
// random loads, of procedures and of what has a condition.
uint32_t Compiler::EventsAtLeast(uint32_t from) const {
  uint32_t events = 0;
  for (uint32_t at = from; at < here();) {
    const Operation& op = code_.operations[at++];
    if (op.kind == Kind::kLoopBegin) at = op.target;
    if (op.kind == Kind::kBranch) {
      at = op.target;
      if (code_.operations[at - 1].kind == Kind::kJump) at = code_.operations[at - 1].target;
    }
    events += op.kind == Kind::kAlloc || op.kind == Kind::kFree || op.kind == Kind::kMark ? 1 : 0;
  }
  return events;
}

bool Compiler::Call(const Where& where, const S& s) {
  size_t index = 0;
  if (!KeysAreUnique(where, S::kWithFieldNumber, s.with().size())) return false;
  if (!FindProcedure(where, s.call(), &index)) return false;
  const auto& args = procedures_[index].proto->args();
  CallCode call;
  for (const std::string& arg : args) {
    const auto it = s.with().find(arg);
    if (it == s.with().end()) {
      return Wrong(where, S::kCallFieldNumber, StrCat("an argument ", Quote(arg)), "none");
    }
    call.arguments.push_back(kNone);
    if (!Value(where, S::kWithFieldNumber, 0, it->second, &call.arguments.back())) return false;
  }
  for (const auto& [name, value] : Sorted(s.with())) {
    if (absl::c_find(args, name) == args.end()) {
      return Wrong(where, S::kWithFieldNumber, StrCat("an argument of ", s.call()), Quote(name));
    }
  }
  calls_.emplace_back(here(), index);
  Operation& op = Emit(Kind::kCall, where, S::kCallFieldNumber);
  op.other = static_cast<uint32_t>(code_.calls.size());
  code_.calls.push_back(std::move(call));
  return true;
}

}  // namespace memreplay::program
