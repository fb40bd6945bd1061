#include "trace/program/expression.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "trace/value/strings.h"

namespace memreplay::program {
namespace {

constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
constexpr int kMaxNesting = 40;

bool IsNameStart(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// Returns the quotient rounded towards minus infinity; requires that b is not 0 and a/b fits.
int64_t FloorQuotient(int64_t a, int64_t b) {
  return a / b - ((a % b != 0 && (a < 0) != (b < 0)) ? 1 : 0);
}

}  // namespace

std::string Expected(const Fault& fault) {
  switch (fault.kind) {
    case Fault::Kind::kOverflow: return "a value within 64 bits";
    case Fault::Kind::kInexact: return "a division without a rest (or floor(a,b), ceil(a,b))";
    case Fault::Kind::kDivisor: return "a positive divisor";
    case Fault::Kind::kNone: break;
  }
  return "a value";
}

std::string Found(const Fault& fault) {
  if (fault.operation == "-" && fault.kind == Fault::Kind::kOverflow && fault.left == 0) {
    return StrCat("-(", fault.right, ")");
  }
  const bool is_function = IsNameStart(fault.operation.empty() ? '?' : fault.operation[0]);
  if (is_function) return StrCat(fault.operation, "(", fault.left, ",", fault.right, ")");
  return StrCat(fault.left, " ", fault.operation, " ", fault.right);
}

bool Expression::Binary(Op op, int64_t a, int64_t b, int64_t* value, Fault* fault) {
  const auto fail = [&](Fault::Kind kind, std::string_view operation) {
    *fault = {kind, operation, a, b};
    return false;
  };
  switch (op) {
    case Op::kAdd: return !__builtin_add_overflow(a, b, value) || fail(Fault::Kind::kOverflow, "+");
    case Op::kSubtract:
      return !__builtin_sub_overflow(a, b, value) || fail(Fault::Kind::kOverflow, "-");
    case Op::kMultiply:
      return !__builtin_mul_overflow(a, b, value) || fail(Fault::Kind::kOverflow, "*");
    case Op::kDivide:
      if (b <= 0) return fail(Fault::Kind::kDivisor, "/");
      if (a % b != 0) return fail(Fault::Kind::kInexact, "/");
      *value = a / b;
      return true;
    case Op::kModulo:
      if (b <= 0) return fail(Fault::Kind::kDivisor, "%");
      *value = a % b + (a % b < 0 ? b : 0);
      return true;
    case Op::kCeil:
      if (b <= 0) return fail(Fault::Kind::kDivisor, "ceil");
      *value = a / b + (a % b > 0 ? 1 : 0);
      return true;
    case Op::kFloor:
      if (b <= 0) return fail(Fault::Kind::kDivisor, "floor");
      *value = FloorQuotient(a, b);
      return true;
    case Op::kRoundUp:
      if (b <= 0) return fail(Fault::Kind::kDivisor, "roundup");
      *value = a / b + (a % b > 0 ? 1 : 0);
      return !__builtin_mul_overflow(*value, b, value) || fail(Fault::Kind::kOverflow, "roundup");
    case Op::kMin: *value = std::min(a, b); return true;
    case Op::kMax: *value = std::max(a, b); return true;
    case Op::kEqual: *value = a == b ? 1 : 0; return true;
    case Op::kNotEqual: *value = a != b ? 1 : 0; return true;
    case Op::kLess: *value = a < b ? 1 : 0; return true;
    case Op::kLessEqual: *value = a <= b ? 1 : 0; return true;
    case Op::kGreater: *value = a > b ? 1 : 0; return true;
    case Op::kGreaterEqual: *value = a >= b ? 1 : 0; return true;
    default: break;
  }
  return fail(Fault::Kind::kNone, "");
}

bool Expression::Evaluate(const int64_t* variables, int64_t* value, Fault* fault) const {
  int64_t stack[kMaxStack];  // large enough, as the parser has checked
  size_t top = 0;            // number of values
  for (size_t at = 0; at < steps_.size(); ++at) {
    const Step& step = steps_[at];
    switch (step.op) {
      case Op::kConstant: stack[top++] = step.value; break;
      case Op::kVariable: stack[top++] = variables[step.value]; break;
      case Op::kNegate:
        if (stack[top - 1] == kMin) {
          *fault = {Fault::Kind::kOverflow, "-", 0, kMin};
          return false;
        }
        stack[top - 1] = -stack[top - 1];
        break;
      case Op::kNot: stack[top - 1] = stack[top - 1] == 0 ? 1 : 0; break;
      case Op::kTruth: stack[top - 1] = stack[top - 1] != 0 ? 1 : 0; break;
      case Op::kJumpIfZero:
        if (stack[--top] == 0) at = static_cast<size_t>(step.value) - 1;
        break;
      case Op::kJump: at = static_cast<size_t>(step.value) - 1; break;
      default:
        --top;
        if (!Binary(step.op, stack[top - 1], stack[top], &stack[top - 1], fault)) return false;
        break;
    }
  }
  *value = stack[0];
  return true;
}

Expression Expression::Constant(int64_t value) {
  Expression expression;
  expression.steps_.push_back({Op::kConstant, value});
  return expression;
}

std::optional<int64_t> Expression::constant() const {
  if (steps_.size() != 1 || steps_[0].op != Op::kConstant) return std::nullopt;
  return steps_[0].value;
}

// A recursive descent parser with one function per level of precedence, each of which emits the
// steps of what it read. All return false after an error.
class ExpressionParser {
 public:
  ExpressionParser(std::string_view text, const Expression::Resolve& resolve)
      : text_(text), resolve_(resolve) {}

  absl::StatusOr<Expression> Parse() {
    if (Or()) {
      SkipBlanks();
      if (at_ == text_.size()) return std::move(result_);
      Fail("an operator or the end");
    }
    return std::move(error_);
  }

 private:
  using Op = Expression::Op;

  bool FailAt(size_t at, std::string_view expected, std::string_view found) {
    error_ =
        absl::InvalidArgumentError(StrCat("expected ", expected, ", found ", found, " at ", at));
    return false;
  }
  bool Fail(std::string_view expected) {
    if (at_ >= text_.size()) return FailAt(at_, expected, "the end");
    const unsigned char c = static_cast<unsigned char>(text_[at_]);
    return FailAt(at_, expected,
                  c < 0x20 || c >= 0x7f ? StrCat("byte ", static_cast<int>(c))
                                        : StrCat("'", std::string(1, text_[at_]), "'"));
  }

  void SkipBlanks() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) ++at_;
  }
  bool Take(std::string_view token) {
    SkipBlanks();
    if (text_.substr(at_, token.size()) != token) return false;
    at_ += token.size();
    return true;
  }
  bool Require(std::string_view token) { return Take(token) || Fail(StrCat("'", token, "'")); }

  bool Push(Op op, int64_t value) {
    if (depth_ == Expression::kMaxStack) {
      return FailAt(at_, "an expression that is less deep", "this one");
    }
    ++depth_;
    result_.steps_.push_back({op, value});
    return true;
  }
  // Combines two consecutive constants into one unless a jump leads between them. If the result is
  // an error, keeps both, so that evaluation returns it.
  void Combine(Op op) {
    auto& steps = result_.steps_;
    --depth_;
    Fault fault;
    int64_t value = 0;
    if (steps.size() >= barrier_ + 2 && steps.back().op == Op::kConstant &&
        steps[steps.size() - 2].op == Op::kConstant &&
        Expression::Binary(op, steps[steps.size() - 2].value, steps.back().value, &value, &fault)) {
      steps.pop_back();
      steps.back().value = value;
      return;
    }
    steps.push_back({op});
  }
  // Emits a jump with an unknown target, which Land() sets to the current position.
  size_t Jump(Op op) {
    if (op == Op::kJumpIfZero) --depth_;
    result_.steps_.push_back({op});
    return result_.steps_.size() - 1;
  }
  void Land(size_t jump) {
    barrier_ = result_.steps_.size();
    result_.steps_[jump].value = static_cast<int64_t>(barrier_);
  }

  bool Or() {
    if (!And()) return false;
    while (Take("||")) {
      const size_t next = Jump(Op::kJumpIfZero);
      if (!Push(Op::kConstant, 1)) return false;
      --depth_;
      const size_t end = Jump(Op::kJump);
      Land(next);
      if (!And()) return false;
      result_.steps_.push_back({Op::kTruth});
      Land(end);
    }
    return true;
  }
  bool And() {
    if (!Comparison()) return false;
    while (Take("&&")) {
      const size_t no = Jump(Op::kJumpIfZero);
      if (!Comparison()) return false;
      result_.steps_.push_back({Op::kTruth});
      --depth_;
      const size_t end = Jump(Op::kJump);
      Land(no);
      if (!Push(Op::kConstant, 0)) return false;
      Land(end);
    }
    return true;
  }
  bool Comparison() {
    static constexpr std::pair<std::string_view, Op> kOperators[] = {
        {"==", Op::kEqual},        {"!=", Op::kNotEqual}, {"<=", Op::kLessEqual},
        {">=", Op::kGreaterEqual}, {"<", Op::kLess},      {">", Op::kGreater}};
    if (!Sum()) return false;
    for (const auto& [token, op] : kOperators) {
      if (!Take(token)) continue;
      if (!Sum()) return false;
      Combine(op);
      break;
    }
    return true;
  }
  bool Sum() {
    if (!Product()) return false;
    while (true) {
      const Op op = Take("+") ? Op::kAdd : Take("-") ? Op::kSubtract : Op::kConstant;
      if (op == Op::kConstant) return true;
      if (!Product()) return false;
      Combine(op);
    }
  }
  bool Product() {
    if (!Unary()) return false;
    while (true) {
      const Op op = Take("*")   ? Op::kMultiply
                    : Take("/") ? Op::kDivide
                    : Take("%") ? Op::kModulo
                                : Op::kConstant;
      if (op == Op::kConstant) return true;
      if (!Unary()) return false;
      Combine(op);
    }
  }
  bool Unary() {
    if (++nesting_ > kMaxNesting) {
      return FailAt(at_, "an expression that is less deep", "this one");
    }
    bool ok = false;
    if (Take("-")) {
      ok = Unary();
      auto& steps = result_.steps_;
      if (ok && steps.size() > barrier_ && steps.back().op == Op::kConstant &&
          steps.back().value != kMin) {
        steps.back().value = -steps.back().value;
      } else if (ok) {
        steps.push_back({Op::kNegate});
      }
    } else if (SkipBlanks(), text_.substr(at_, 1) == "!" && text_.substr(at_, 2) != "!=") {
      ++at_;
      ok = Unary();
      if (ok) result_.steps_.push_back({Op::kNot});
    } else {
      ok = Operand();
    }
    --nesting_;
    return ok;
  }
  bool Operand() {
    SkipBlanks();
    if (at_ >= text_.size()) return Fail("a number, a name or '('");
    if (IsDigit(text_[at_])) return Number();
    if (IsNameStart(text_[at_])) return Name();
    if (!Take("(")) return Fail("a number, a name or '('");
    return Or() && Require(")");
  }
  bool Number() {
    const size_t begin = at_;
    uint64_t value = 0;
    constexpr auto kMax = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
    bool fits = true;
    for (; at_ < text_.size() && IsDigit(text_[at_]); ++at_) {
      const auto digit = static_cast<uint64_t>(text_[at_] - '0');
      fits = fits && value <= (kMax - digit) / 10;
      if (fits) value = value * 10 + digit;
    }
    for (const auto& [unit, shift] :
         {std::pair<std::string_view, int>{"KiB", 10}, std::pair<std::string_view, int>{"MiB", 20},
          std::pair<std::string_view, int>{"GiB", 30}}) {
      if (text_.substr(at_, unit.size()) != unit) continue;
      at_ += unit.size();
      fits = fits && value <= kMax >> shift;
      value <<= shift;
      break;
    }
    if (at_ < text_.size() && (IsNameStart(text_[at_]) || IsDigit(text_[at_]))) {
      return Fail("an operator or the end");
    }
    if (!fits) {
      return FailAt(begin, "a number within 64 bits", text_.substr(begin, at_ - begin));
    }
    return Push(Op::kConstant, static_cast<int64_t>(value));
  }
  bool Name() {
    const size_t begin = at_;
    while (at_ < text_.size() && (IsNameStart(text_[at_]) || IsDigit(text_[at_]))) ++at_;
    const std::string_view name = text_.substr(begin, at_ - begin);
    if (Take("(")) return Call(begin, name);
    const std::optional<Expression::Binding> binding = resolve_(name);
    if (!binding) {
      return FailAt(begin, "a variable or parameter that is known here", StrCat("'", name, "'"));
    }
    return Push(binding->is_constant ? Op::kConstant : Op::kVariable, binding->value);
  }
  bool Call(size_t begin, std::string_view name) {
    if (name == "if") {
      if (!Or() || !Require(",")) return false;
      const size_t otherwise = Jump(Op::kJumpIfZero);
      if (!Or() || !Require(",")) return false;
      --depth_;
      const size_t end = Jump(Op::kJump);
      Land(otherwise);
      if (!Or()) return false;
      Land(end);
      return Require(")");
    }
    static constexpr std::pair<std::string_view, Op> kFunctions[] = {
        {"ceil", Op::kCeil}, {"floor", Op::kFloor},     {"min", Op::kMin},
        {"max", Op::kMax},   {"roundup", Op::kRoundUp},
    };
    for (const auto& [known, op] : kFunctions) {
      if (known != name) continue;
      if (!Or() || !Require(",") || !Or()) return false;
      Combine(op);
      while ((op == Op::kMin || op == Op::kMax) && Take(",")) {
        if (!Or()) return false;
        Combine(op);
      }
      return Require(")");
    }
    return FailAt(begin, "one of ceil, floor, min, max, roundup, if", StrCat("'", name, "'"));
  }

  std::string_view text_;
  const Expression::Resolve& resolve_;
  Expression result_;
  absl::Status error_;
  size_t at_ = 0;
  size_t depth_ = 0;    // values on the stack after the steps so far
  size_t barrier_ = 0;  // target of a jump; steps before it are not combined with later ones
  int nesting_ = 0;
};

absl::StatusOr<Expression> Expression::Parse(std::string_view text, const Resolve& resolve) {
  return ExpressionParser(text, resolve).Parse();
}

}  // namespace memreplay::program
