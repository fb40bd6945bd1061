#include "trace/program/program_compiler.h"

#include <cmath>

#include "trace/bytes/json_scanner.h"
#include "trace/program/compiler.h"

namespace memreplay::program {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using Places = google::protobuf::TextFormat::ParseInfoTree;
using P = proto::ScheduleProgram;
using S = proto::Statement;
using Kind = Operation::Kind;

constexpr int kMaxDerived = 1000;
constexpr int kMaxStreams = 65536;
constexpr int kMaxPools = 65535;

// Procedures that every schedule program can call: loads that are known to be hard for allocators,
// written in the language itself.
constexpr std::string_view kPatternPrefix = "pattern.";

// Every procedure frees what it allocates.
constexpr std::string_view kPatterns = R"program(
  # n sizes, each one unit larger than the one before, all live; `rounds` times.
  procs {
    key: "pattern.sawtooth"
    value {
      args: ["n", "unit", "rounds"]
      body {
        repeat: "rounds"
        body { for: "i" range: ["0", "n"] body { alloc: "sawtooth[i]" bytes: "unit*(i+1)" } }
        body { for: "i" range: ["0", "n"] body { free: "sawtooth[i]" } }
      }
    }
  }
  # One at a time, each larger by `step`: no block that was freed is large enough.
  procs {
    key: "pattern.ramp"
    value {
      args: ["n", "bytes", "step"]
      body { for: "i" range: ["0", "n"] body { temp: "ramp" bytes: "bytes+i*step" } }
    }
  }
  # n blocks of which every other is freed; then half as many of twice the size,
  # which fit into none of the holes.
  procs {
    key: "pattern.checkerboard"
    value {
      args: ["n", "bytes"]
      body { for: "i" range: ["0", "n"] body { alloc: "checker[i]" bytes: "bytes" } }
      body { for: "i" range: ["0", "n", "2"] body { free: "checker[i]" } }
      body { for: "i" range: ["0", "floor(n,2)"] body { alloc: "double[i]" bytes: "2*bytes" } }
      body { for: "i" range: ["0", "floor(n,2)"] body { free: "double[i]" } }
      body { for: "i" range: ["1", "n", "2"] body { free: "checker[i]" } }
    }
  }
  # A byte below, at and above each size at which the allocator changes its mind.
  procs {
    key: "pattern.straddle"
    value {
      body {
        foreach: "edge"
        values: ["512", "1MiB", "2MiB", "10MiB", "20MiB", "200MiB"]
        body {
          for: "off"
          range: ["-1", "2"]
          body { alloc: "straddle[edge][off]" bytes: "edge+off" }
        }
      }
      body {
        foreach: "edge"
        values: ["512", "1MiB", "2MiB", "10MiB", "20MiB", "200MiB"]
        body { for: "off" range: ["-1", "2"] body { free: "straddle[edge][off]" } }
      }
    }
  }
  # n large blocks, freed while a small one next to each survives: then the cache is
  # emptied, and nothing can go.
  procs {
    key: "pattern.pinhole"
    value {
      args: ["n", "bytes", "pin"]
      body {
        for: "i"
        range: ["0", "n"]
        body { alloc: "pinhole[i]" bytes: "bytes" }
        body { alloc: "pin[i]" bytes: "pin" }
      }
      body { for: "i" range: ["0", "n"] body { free: "pinhole[i]" } }
      body { empty_cache: true }
      body { for: "i" range: ["0", "n"] body { free: "pin[i]" } }
    }
  }
)program";

}  // namespace

absl::StatusOr<ProgramCode> Compiler::Compile() {
  if (!Head() || !Params() || !Derived() || !Procedures() || !Main()) return std::move(error_);
  Header();
  return std::move(code_);
}

bool Compiler::KeysAreUnique(const Where& where, int field, size_t keys) {
  const auto* reflection = where.message->GetReflection();
  const int entries = reflection->FieldSize(*where.message, Field(where, field));
  return static_cast<size_t>(entries) == keys ||
         Wrong(where, field, "each key once", "one of them again");
}

bool Compiler::Head() {
  const P& program = text_.program;
  if (program.format() != "memsched") {
    return Wrong(root_, P::kFormatFieldNumber, "\"memsched\"", Quote(program.format()));
  }
  if (program.version() != 1) {
    return Wrong(root_, P::kVersionFieldNumber, "1", StrCat(program.version()));
  }
  if (program.streams_size() > kMaxStreams) {
    return Wrong(root_, P::kStreamsFieldNumber, StrCat("at most ", kMaxStreams, " streams"),
                 StrCat(program.streams_size()));
  }
  std::set<std::string> names;
  for (int i = 0; i < program.streams_size(); ++i) {
    if (program.streams(i).empty() || !names.insert(program.streams(i)).second) {
      return Wrong(root_, P::kStreamsFieldNumber, i, "a name of its own",
                   Quote(program.streams(i)));
    }
  }
  code_.streams = static_cast<uint32_t>(std::max(program.streams_size(), 1));
  if (program.pools_size() > kMaxPools) {
    return Wrong(root_, P::kPoolsFieldNumber, StrCat("at most ", kMaxPools, " pools"),
                 StrCat(program.pools_size()));
  }
  PoolId last;
  names.clear();
  for (int i = 0; i < program.pools_size(); ++i) {
    const proto::ProgramPool& pool = program.pools(i);
    if (pool.name().empty() || !names.insert(pool.name()).second) {
      return Wrong(root_, P::kPoolsFieldNumber, i, "a name of its own", Quote(pool.name()));
    }
    code_.pools.push_back(pool.mem_pool() ? PoolId{0, ++last.second} : PoolId{++last.first, 0});
  }
  code_.seed = program.seed();
  if (program.max_events() > kMaxEventLimit && options_.max_events == 0) {
    return Wrong(
        root_, P::kMaxEventsFieldNumber,
        StrCat("at most ", kMaxEventLimit, " (memreplay synth --max_events raises the limit)"),
        StrCat(program.max_events()));
  }
  if (program.max_events() != 0) code_.max_events = program.max_events();
  if (options_.max_events != 0) code_.max_events = options_.max_events;
  code_.context = Bytes(program.device().context());
  code_.other_processes = Bytes(program.device().other());
  if (program.device().total() != 0) code_.total = Bytes(program.device().total());
  if (program.fraction() != 0) {
    if (!(program.fraction() > 0 && program.fraction() <= 1)) {
      return Wrong(root_, P::kFractionFieldNumber, "a number above 0 and at most 1",
                   StrCat(program.fraction()));
    }
    code_.fraction = program.fraction();
  }
  code_.conf = program.conf();
  if (program.completion() == "explicit") {
    code_.completion = Completion::kExplicit;
  } else if (!program.completion().empty() && program.completion() != "at_once") {
    return Wrong(root_, P::kCompletionFieldNumber, "\"at_once\" or \"explicit\"",
                 Quote(program.completion()));
  }
  return true;
}

bool Compiler::Params() {
  const P& program = text_.program;
  if (!KeysAreUnique(root_, P::kParamsFieldNumber, program.params().size())) return false;
  std::string known;
  for (const auto& [name, value] : Sorted(program.params())) {
    if (!IsName(name)) return Wrong(root_, P::kParamsFieldNumber, "a name", Quote(name));
    constants_[name] = value;
    StrAppend(&known, known.empty() ? "" : ", ", name);
  }
  for (const auto& [name, value] : options_.params) {
    const auto it = constants_.find(name);
    if (it == constants_.end()) {
      return Wrong(root_, P::kParamsFieldNumber,
                   known.empty() ? "no parameter to be set" : StrCat("one of ", known),
                   Quote(name));
    }
    it->second = value;
  }
  return true;
}

bool Compiler::Derived() {
  const auto& derived = text_.program.derived();
  if (!KeysAreUnique(root_, P::kDerivedFieldNumber, derived.size())) return false;
  if (derived.size() > kMaxDerived) {
    return Wrong(root_, P::kDerivedFieldNumber, StrCat("at most ", kMaxDerived),
                 StrCat(derived.size()));
  }
  const std::map<std::string, std::string> sorted = Sorted(derived);
  for (const auto& [name, text] : sorted) {
    if (!IsName(name)) return Wrong(root_, P::kDerivedFieldNumber, "a name", Quote(name));
    if (constants_.contains(name)) {
      return Wrong(root_, P::kDerivedFieldNumber, "a name that is no parameter", Quote(name));
    }
  }
  for (const auto& [name, text] : sorted) {
    if (!Derive(name)) return false;
  }
  return true;
}

bool Compiler::Derive(const std::string& name) {
  if (constants_.contains(name)) return true;
  const std::string& text = text_.program.derived().at(name);
  if (!deriving_.insert(name).second) {
    return Wrong(root_, P::kDerivedFieldNumber, StrCat("a value for ", Quote(name)),
                 "one that depends on itself");
  }
  bool failed = false;
  const auto resolve = [&](std::string_view used) -> std::optional<Expression::Binding> {
    const std::string key(used);
    if (!constants_.contains(key)) {
      if (failed || !text_.program.derived().contains(key)) return std::nullopt;
      if (!Derive(key)) {
        failed = true;
        return std::nullopt;
      }
    }
    return Expression::Binding{true, constants_[key]};
  };
  const absl::StatusOr<Expression> expression = Expression::Parse(text, resolve);
  if (failed) return false;
  const std::string place =
      StrCat(Place(root_, P::kDerivedFieldNumber, 0), "derived[", Quote(name), "]: ");
  if (!expression.ok()) {
    error_ = absl::InvalidArgumentError(
        StrCat(place, ToStd(expression.status().message()), " of ", Quote(text)));
    return false;
  }
  int64_t value = 0;
  Fault fault;
  if (!expression->Evaluate(nullptr, &value, &fault)) {
    error_ = absl::InvalidArgumentError(
        StrCat(place, "expected ", Expected(fault), ", found ", Found(fault), " in ", Quote(text)));
    return false;
  }
  constants_[name] = value;
  return true;
}

bool Compiler::AddProcedures(const ProgramText& text) {
  const Where root{&text.program, "", &text == &text_ ? text.places.get() : nullptr};
  const FieldDescriptor* field = Field(root, P::kProcsFieldNumber);
  const auto* reflection = text.program.GetReflection();
  // Reads the map as entries, which keeps the order of the file and duplicates.
  for (int i = 0; i < reflection->FieldSize(text.program, field); ++i) {
    const Message& entry = reflection->GetRepeatedMessage(text.program, field, i);
    const FieldDescriptor* key = entry.GetDescriptor()->map_key();
    const FieldDescriptor* value = entry.GetDescriptor()->map_value();
    Procedure procedure;
    procedure.name = entry.GetReflection()->GetString(entry, key);
    const Message& body = entry.GetReflection()->GetMessage(entry, value);
    procedure.proto = google::protobuf::internal::DownCast<const proto::Procedure*>(&body);
    const Places* places = nullptr;
    if (root.places != nullptr) {
      places = root.places->GetTreeForNested(field, i);
      if (places != nullptr) places = places->GetTreeForNested(value, -1);
    }
    procedure.where = {&body, StrCat("procs[", Quote(procedure.name), "]"), places};
    if (!procedure_index_.try_emplace(procedure.name, procedures_.size()).second) {
      return Wrong(root, P::kProcsFieldNumber, i, "each procedure once", Quote(procedure.name));
    }
    procedures_.push_back(std::move(procedure));
  }
  return true;
}

bool Compiler::FindProcedure(const Where& where, const std::string& name, size_t* index) {
  if (name.substr(0, kPatternPrefix.size()) == kPatternPrefix && !patterns_) {
    absl::StatusOr<ProgramText> patterns = ParseProgramText(kPatterns);
    if (!patterns.ok()) {
      error_ = patterns.status();
      return false;
    }
    patterns_ = *std::move(patterns);
    if (!AddProcedures(*patterns_)) return false;
  }
  const auto it = procedure_index_.find(name);
  if (it == procedure_index_.end()) {
    return Wrong(where, S::kCallFieldNumber, "the name of a procedure", Quote(name));
  }
  *index = it->second;
  return true;
}

bool Compiler::Procedures() { return AddProcedures(text_); }

bool Compiler::Main() {
  if (!Block(root_, P::kProgramFieldNumber, text_.program.program())) return false;
  Emit(Kind::kReturn, root_, 0);
  code_.main_slots = slots_;
  // Calls may append patterns during the loop.
  for (size_t i = 0; i < procedures_.size(); ++i) {
    const proto::Procedure& proto = *procedures_[i].proto;
    const Where where = procedures_[i].where;
    variables_.clear();
    slots_ = 0;
    procedures_[i].entry = here();
    for (int arg = 0; arg < proto.args_size(); ++arg) {
      for (const Variable& before : variables_) {
        if (before.name == proto.args(arg)) {
          return Wrong(where, proto::Procedure::kArgsFieldNumber, arg, "each argument once",
                       Quote(proto.args(arg)));
        }
      }
      uint32_t slot = 0;
      if (!Declare(where, proto::Procedure::kArgsFieldNumber, arg, proto.args(arg), false, &slot)) {
        return false;
      }
    }
    if (!Block(where, proto::Procedure::kBodyFieldNumber, proto.body())) return false;
    Emit(Kind::kReturn, where, 0);
    procedures_[i].slots = slots_;
  }
  for (const auto& [operation, procedure] : calls_) {
    Operation& call = code_.operations[operation];
    call.target = procedures_[procedure].entry;
    code_.calls[call.other].slots = procedures_[procedure].slots;
  }
  return true;
}

void Compiler::Header() {
  const P& program = text_.program;
  std::map<std::string, std::string> meta = Sorted(program.meta());
  if (!program.device().name().empty()) meta.try_emplace("device", program.device().name());
  if (!program.device().cc().empty()) meta.try_emplace("cc", program.device().cc());
  std::string& out = code_.header;
  out = "{\"config\":{";
  for (const auto& [name, value] : Sorted(program.params())) {
    StrAppend(&out, out.back() == '{' ? "\"" : ",\"", name, "\":", constants_[name]);
  }
  StrAppend(&out, "},\"seed\":", code_.seed);
  if (!meta.empty()) {
    StrAppend(&out, ",\"meta\":{");
    for (const auto& [name, value] : meta) {
      if (out.back() != '{') out += ',';
      AppendJsonString(name, &out);
      out += ':';
      AppendJsonString(value, &out);
    }
    out += '}';
  }
  out += '}';
}

absl::StatusOr<ProgramCode> CompileProgram(const ProgramText& text, const CompileOptions& options) {
  return Compiler(text, options).Compile();
}

}  // namespace memreplay::program
