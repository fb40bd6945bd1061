// Integer expressions of schedule programs, parsed once into a postfix form and evaluated often.
//
//   || && == != < <= > >= + - * / % ! unary -   ( )
//   ceil(a,b) floor(a,b)   the quotient rounded up, down
//   min(a,...) max(a,...) roundup(a,b) if(c,a,b)
//
// Numbers are 64-bit, decimal, with or without a unit (91MiB). A `/` must be exact; `%` is never
// negative for a positive divisor. Results beyond 64 bits are an error. `if`, && and || evaluate
// only the operands they need.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace memreplay::program {

// The reason why an expression has no value.
struct Fault {
  enum class Kind : uint8_t { kNone, kOverflow, kInexact, kDivisor };
  Kind kind = Kind::kNone;
  std::string_view operation;  // "*"
  int64_t left = 0;
  int64_t right = 0;
};
// Return the two parts of an error, such as "a product of 64 bits" and "3000000000 * 4000000000".
std::string Expected(const Fault& fault);
std::string Found(const Fault& fault);

// A compiled integer expression.
class Expression {
 public:
  struct Binding {
    bool is_constant = false;
    int64_t value = 0;  // or the number of the variable
  };
  using Resolve = std::function<std::optional<Binding>(std::string_view name)>;

  // Parses `text`. Error: "expected X, found Y at N" with the offset in `text`.
  static absl::StatusOr<Expression> Parse(std::string_view text, const Resolve& resolve);
  static Expression Constant(int64_t value);

  // Returns the value if there are no variables (and there is a value).
  std::optional<int64_t> constant() const;
  // Evaluates the expression in O(length). Returns false after an error, which is then in `fault`.
  bool Evaluate(const int64_t* variables, int64_t* value, Fault* fault) const;

 private:
  friend class ExpressionParser;
  enum class Op : uint8_t {
    kConstant,
    kVariable,
    kAdd,
    kSubtract,
    kMultiply,
    kDivide,
    kModulo,
    kCeil,
    kFloor,
    kMin,
    kMax,
    kRoundUp,
    kEqual,
    kNotEqual,
    kLess,
    kLessEqual,
    kGreater,
    kGreaterEqual,
    kNegate,
    kNot,
    kTruth,       // 0 or 1
    kJumpIfZero,  // pops the top
    kJump,
  };
  struct Step {
    Op op;
    int64_t value = 0;  // constant, variable or target
  };
  static constexpr size_t kMaxStack = 256;
  static bool Binary(Op op, int64_t a, int64_t b, int64_t* value, Fault* fault);

  std::vector<Step> steps_;
};

}  // namespace memreplay::program
