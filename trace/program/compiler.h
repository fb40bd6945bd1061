// The compiler of schedule programs, shared by its three parts: the head of a program and its
// procedures (program_compiler.cc), names and values (compile_values.cc), and statements
// (compile_statements.cc).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "trace/program/program_compiler.h"
#include "trace/value/strings.h"

namespace memreplay::program {

// A message of the program, with its name in errors and the places of its fields.
struct Where {
  const google::protobuf::Message* message;
  std::string path;
  const google::protobuf::TextFormat::ParseInfoTree* places;  // null: unknown
  google::protobuf::TextFormat::ParseLocation at = {};        // of the message itself
};

// Compiles a program. Functions that return bool return false after an error, which is then in
// error_.
class Compiler {
 public:
  Compiler(const ProgramText& text, const CompileOptions& options)
      : text_(text), options_(options), root_{&text.program, "", text.places.get()} {}

  absl::StatusOr<ProgramCode> Compile();

 private:
  struct Procedure {
    std::string name;
    const proto::Procedure* proto;
    Where where;
    uint32_t entry = kNone;
    uint32_t slots = 0;
  };
  struct Variable {
    std::string name;
    uint32_t slot;
    bool is_index;
  };

  // Returns a map of the program in an order that is the same in every process.
  template <typename Map>
  static std::map<std::string, typename Map::mapped_type> Sorted(const Map& map) {
    return {map.begin(), map.end()};
  }

  // Errors.

  static const google::protobuf::FieldDescriptor* Field(const Where& where, int field) {
    return where.message->GetDescriptor()->FindFieldByNumber(field);
  }
  static google::protobuf::TextFormat::ParseLocation Location(const Where& where, int field,
                                                              int index);
  static std::string Place(const Where& where, int field, int index);
  bool Wrong(const Where& where, int field, int index, std::string_view expected,
             std::string_view found);
  bool Wrong(const Where& where, int field, std::string_view expected, std::string_view found) {
    const bool is_repeated = field != 0 && Field(where, field)->is_repeated();
    return Wrong(where, field, is_repeated ? 0 : -1, expected, found);
  }
  static std::string Quote(std::string_view text) { return StrCat("\"", text, "\""); }
  // Returns the place and the path of a field: "line 3, column 5: program[0].body[2].bytes".
  static std::string FieldPlace(const Where& where, int field, int index);
  static Where Inside(const Where& where, const google::protobuf::Message& message, int field,
                      int index);

  // Names.

  std::optional<Expression::Binding> Lookup(std::string_view name) const;
  static bool IsName(std::string_view name);
  // Declares a variable, visible until the block ends.
  bool Declare(const Where& where, int field, int index, const std::string& name, bool is_index,
               uint32_t* slot);

  // Values.

  bool Value(const Where& where, int field, int index, const std::string& text, uint32_t* number);
  uint32_t Add(Expression expression, std::string text = "") {
    code_.expressions.push_back(std::move(expression));
    code_.expression_texts.push_back(std::move(text));
    return static_cast<uint32_t>(code_.expressions.size() - 1);
  }
  // Adds a part of the code and returns its number.
  template <typename T>
  static uint32_t Append(std::vector<T>* parts, T part) {
    parts->push_back(std::move(part));
    return static_cast<uint32_t>(parts->size() - 1);
  }
  // Adds consecutive copies of the expressions and returns the first number.
  uint32_t AddCopies(absl::Span<const uint32_t> values);
  bool Optional(const Where& where, int field, const std::string& text, uint32_t* number) {
    return text.empty() || Value(where, field, -1, text, number);
  }
  // Compiles "it{it}.fwd"; "{{" stands for a brace.
  bool Text(const Where& where, int field, const std::string& text, uint32_t* number);
  // Compiles "act[mb][l]".
  bool Handle(const Where& where, int field, const std::string& text, uint32_t* number);
  bool Stream(const Where& where, int field, const std::string& text, uint32_t* number);
  bool Pool(const Where& where, int field, const std::string& text, uint32_t* number);
  bool Label(const Where& where, const proto::Statement& statement, const std::string& handle,
             uint32_t* number);
  bool Weights(const Where& where, const proto::Distribution& distribution, size_t count,
               DistributionCode* code);
  bool Distribution(const Where& where, const proto::Distribution& distribution, int depth,
                    uint32_t* number);
  bool Random(const Where& where, const proto::RandomLoad& random, uint32_t* number);

  // Parts.

  bool Head();
  bool Params();
  bool Derived();
  bool Derive(const std::string& name);
  bool Procedures();
  bool AddProcedures(const ProgramText& text);
  bool FindProcedure(const Where& where, const std::string& name, size_t* index);
  bool Main();
  void Header();
  bool KeysAreUnique(const Where& where, int field, size_t keys);

  // Statements.

  Operation& Emit(Operation::Kind kind, const Where& where, int field);
  uint32_t here() const { return static_cast<uint32_t>(code_.operations.size()); }
  bool Block(const Where& where, int field,
             const google::protobuf::RepeatedPtrField<proto::Statement>& statements);
  struct Verb;
  static const Verb kVerbs[];
  // Returns null after an error.
  const Verb* FindVerb(const Where& where, const proto::Statement& statement);
  bool Statement(const Where& where, const proto::Statement& s);
  // A statement that is an operation, or two around its body.
  bool Simple(const Where& where, const proto::Statement& s, const Verb& verb);
  bool Loop(const Where& where, const proto::Statement& s, int verb);
  uint32_t EventsAtLeast(uint32_t from) const;
  bool Call(const Where& where, const proto::Statement& s);
  bool Let(const Where& where, const proto::Statement& s);

  const ProgramText& text_;
  const CompileOptions& options_;
  const Where root_;
  ProgramCode code_;
  absl::Status error_;
  absl::flat_hash_map<std::string, int64_t> constants_;  // params and derived values
  std::set<std::string> deriving_;
  absl::flat_hash_map<std::string, uint32_t> names_;  // of handles, without their indexes
  std::vector<Procedure> procedures_;
  absl::flat_hash_map<std::string, size_t> procedure_index_;
  std::vector<std::pair<uint32_t, size_t>> calls_;  // operation, procedure
  std::optional<ProgramText> patterns_;
  // State of the procedure that is being compiled.
  std::vector<Variable> variables_;
  uint32_t slots_ = 0;
};

}  // namespace memreplay::program
