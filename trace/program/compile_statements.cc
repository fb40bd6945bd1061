#include <algorithm>

#include "trace/bytes/json_scanner.h"
#include "trace/program/compiler.h"
#include "trace/program/verbs.h"

namespace memreplay::program {
namespace {

using google::protobuf::FieldDescriptor;
using S = proto::Statement;
using Kind = Operation::Kind;

}  // namespace

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

bool Compiler::FindVerb(const Where& where, const S& statement, int* field) {
  std::vector<const FieldDescriptor*> set;
  statement.GetReflection()->ListFields(statement, &set);
  const Verb* verb = nullptr;
  for (const FieldDescriptor* f : set) {
    if (f->number() >= kFirstDetail) continue;
    if (verb != nullptr) {
      return Wrong(where, f->number(), "one verb in a statement",
                   StrCat(std::string_view(Field(where, verb->field)->name()), " and ",
                          std::string_view(f->name())));
    }
    for (const Verb& row : kVerbs) {
      if (row.field == f->number()) verb = &row;
    }
  }
  if (verb == nullptr) {
    return Wrong(where, 0, "a verb (alloc, free, repeat ...)",
                 set.empty() ? std::string("an empty statement")
                             : StrCat("only ", std::string_view(set[0]->name())));
  }
  const std::string name(Field(where, verb->field)->name());
  for (const FieldDescriptor* f : set) {
    if (f->number() < kFirstDetail) continue;
    bool known = false;
    for (const int other : verb->required) known = known || other == f->number();
    for (const int other : verb->optional) known = known || other == f->number();
    if (!known) {
      return Wrong(where, f->number(), StrCat("what goes with ", name),
                   std::string_view(f->name()));
    }
  }
  for (const int other : verb->required) {
    if (other == 0) continue;
    bool given = false;
    for (const FieldDescriptor* f : set) given = given || f->number() == other;
    if (!given) {
      return Wrong(where, verb->field,
                   StrCat(std::string_view(Field(where, other)->name()), " with it"), "none");
    }
  }
  *field = verb->field;
  return true;
}

bool Compiler::Statement(const Where& where, const S& s) {
  int verb = 0;
  if (!FindVerb(where, s, &verb)) return false;
  switch (verb) {
    case S::kAllocFieldNumber:
    case S::kTempFieldNumber:
    case S::kFreeFieldNumber:
    case S::kMoveFieldNumber:
    case S::kUseFieldNumber:
    case S::kRetagFieldNumber:
    case S::kOutsideFieldNumber:
    case S::kOutsideFreeFieldNumber:
    case S::kEventFieldNumber:
    case S::kWaitFieldNumber: return Memory(where, s, verb);
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
    default: return Other(where, s, verb);
  }
}

bool Compiler::Memory(const Where& where, const S& s, int verb) {
  Operation op;
  const std::string name =
      s.GetReflection()->GetString(s, Field(where, verb));  // these verbs are handles
  if (!Handle(where, verb, name, &op.handle)) return false;
  if (!s.stream().empty() && !Stream(where, S::kStreamFieldNumber, s.stream(), &op.stream)) {
    return false;
  }
  if (!Optional(where, S::kBytesFieldNumber, s.bytes(), &op.value)) return false;
  switch (verb) {
    case S::kAllocFieldNumber:
    case S::kTempFieldNumber:
      op.kind = Kind::kAlloc;
      if (!Label(where, s, name, &op.label)) return false;
      break;
    case S::kFreeFieldNumber: op.kind = Kind::kFree; break;
    case S::kMoveFieldNumber:
      op.kind = Kind::kMove;
      if (!Handle(where, S::kToFieldNumber, s.to(), &op.other)) return false;
      break;
    case S::kUseFieldNumber: op.kind = Kind::kUse; break;
    case S::kRetagFieldNumber:
      op.kind = Kind::kRetag;
      if (!Text(where, S::kTagFieldNumber, s.tag(), &op.other)) return false;
      break;
    case S::kOutsideFieldNumber:
      op.kind = Kind::kOutside;
      if (!Text(where, S::kSiteFieldNumber, s.site().empty() ? name : s.site(), &op.other)) {
        return false;
      }
      break;
    case S::kOutsideFreeFieldNumber: op.kind = Kind::kOutsideFree; break;
    case S::kEventFieldNumber: op.kind = Kind::kEvent; break;
    default: op.kind = Kind::kWait; break;
  }
  const auto emit = [&] {
    Operation& emitted = Emit(op.kind, where, verb);
    op.place = emitted.place;
    emitted = op;
  };
  emit();
  if (verb == S::kTempFieldNumber) {
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
    if (std::find(args.begin(), args.end(), name) == args.end()) {
      return Wrong(where, S::kWithFieldNumber, StrCat("an argument of ", s.call()), Quote(name));
    }
  }
  calls_.emplace_back(here(), index);
  Operation& op = Emit(Kind::kCall, where, S::kCallFieldNumber);
  op.other = static_cast<uint32_t>(code_.calls.size());
  code_.calls.push_back(std::move(call));
  return true;
}

bool Compiler::Other(const Where& where, const S& s, int verb) {
  Operation op;
  switch (verb) {
    case S::kDoneFieldNumber:
      op.kind = Kind::kDone;
      if (!Stream(where, verb, s.done(), &op.stream)) return false;
      break;
    case S::kEmptyCacheFieldNumber: op.kind = Kind::kEmptyCache; break;
    case S::kMarkFieldNumber:
      op.kind = Kind::kMark;
      if (!Text(where, verb, s.mark(), &op.other)) return false;
      break;
    case S::kResetFieldNumber:
      if (s.reset() != "peak" && s.reset() != "accumulated") {
        return Wrong(where, verb, "\"peak\" or \"accumulated\"", Quote(s.reset()));
      }
      op.kind = s.reset() == "peak" ? Kind::kResetPeak : Kind::kResetAccumulated;
      break;
    case S::kConfFieldNumber:
      op.kind = Kind::kSettings;
      if (!Text(where, verb, s.conf(), &op.other)) return false;
      break;
    case S::kFractionFieldNumber: {
      const std::optional<double> fraction = ParseJsonDouble(s.fraction());
      if (!fraction || *fraction < 0 || *fraction > 1) {
        return Wrong(where, verb, "a number from 0 to 1", Quote(s.fraction()));
      }
      op.kind = Kind::kFraction;
      if (!Text(where, verb, s.fraction(), &op.other)) return false;
      break;
    }
    case S::kFailNextFieldNumber:
      op.kind = Kind::kFailNext;
      if (!Value(where, verb, -1, s.fail_next(), &op.value)) return false;
      break;
    case S::kPoolCreateFieldNumber:
      op.kind = Kind::kPoolCreate;
      if (!Pool(where, verb, s.pool_create(), &op.other)) return false;
      op.value = static_cast<uint32_t>((s.serves_on_oom() ? uint64_t{kPoolUseOnOom} : 0) |
                                       (s.no_split() ? uint64_t{kPoolNoSplit} : 0));
      break;
    case S::kPoolForgetFieldNumber:
      op.kind = Kind::kPoolForget;
      if (!Pool(where, verb, s.pool_forget(), &op.other)) return false;
      break;
    case S::kPoolReleaseFieldNumber:
      op.kind = Kind::kPoolRelease;
      if (!Pool(where, verb, s.pool_release(), &op.other)) return false;
      break;
    default:
      op.kind = Kind::kRandom;
      if (!Random(Inside(where, s.random(), verb, -1), s.random(), &op.other)) return false;
      break;
  }
  Operation& emitted = Emit(op.kind, where, verb);
  op.place = emitted.place;
  emitted = op;
  return true;
}

}  // namespace memreplay::program
