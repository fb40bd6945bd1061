#include "trace/program/expression.h"

#include <gtest/gtest.h>

#include <limits>
#include <optional>
#include <random>
#include <string>

namespace memreplay::program {
namespace {

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

// x and y are variables, B is the constant 6.
std::optional<Expression::Binding> Resolve(std::string_view name) {
  if (name == "x") return Expression::Binding{false, 0};
  if (name == "y") return Expression::Binding{false, 1};
  if (name == "B") return Expression::Binding{true, 6};
  return std::nullopt;
}

// The value as text, or why there is none.
std::string Value(const std::string& text, int64_t x = 7, int64_t y = -3) {
  const absl::StatusOr<Expression> expression = Expression::Parse(text, Resolve);
  if (!expression.ok()) return std::string(expression.status().message());
  const int64_t variables[] = {x, y};
  int64_t value = 0;
  Fault fault;
  if (expression->Evaluate(variables, &value, &fault)) return std::to_string(value);
  return "expected " + Expected(fault) + ", found " + Found(fault);
}

TEST(Expression, HasPrecedence) {
  EXPECT_EQ(Value("1+2*3"), "7");
  EXPECT_EQ(Value("(1+2)*3"), "9");
  EXPECT_EQ(Value("10-4-3"), "3");
  EXPECT_EQ(Value("-x+1"), "-6");
  EXPECT_EQ(Value("- -x"), "7");
  EXPECT_EQ(Value("2*-y"), "6");
  EXPECT_EQ(Value("1 + 1 == 2 && 3 < 2 || x >= 7"), "1");
  EXPECT_EQ(Value("!x + 1"), "1");
  EXPECT_EQ(Value("!(x != 7) * B"), "6");
  EXPECT_EQ(Value("x < y"), "0");
  EXPECT_EQ(Value(" \tB "), "6");
}

TEST(Expression, HasFunctionsAndUnits) {
  EXPECT_EQ(Value("ceil(x, 2)"), "4");
  EXPECT_EQ(Value("ceil(-7, 2)"), "-3");
  EXPECT_EQ(Value("floor(x, 2)"), "3");
  EXPECT_EQ(Value("floor(-7, 2)"), "-4");
  EXPECT_EQ(Value("-7 % 4"), "1");
  EXPECT_EQ(Value("y % 4"), "1");
  EXPECT_EQ(Value("min(x, y, 2)"), "-3");
  EXPECT_EQ(Value("max(x, y, 9)"), "9");
  EXPECT_EQ(Value("roundup(x, 8)"), "8");
  EXPECT_EQ(Value("roundup(8, 8)"), "8");
  EXPECT_EQ(Value("roundup(0, 8)"), "0");
  EXPECT_EQ(Value("91MiB + 2KiB"), "95422464");
  EXPECT_EQ(Value("8GiB"), "8589934592");
  EXPECT_EQ(Value("if(x > 3, 10, 20) + 1"), "11");
  EXPECT_EQ(Value("if(x > 8, 10, 20) + 1"), "21");
  EXPECT_EQ(Value("1 + if(y, if(x, 2, 3), 4) * 5"), "11");
}

TEST(Expression, EvaluatesOnlyWhatItNeeds) {
  EXPECT_EQ(Value("if(0, 1/0, 5)"), "5");
  EXPECT_EQ(Value("if(y < 0, 5, x / 2)"), "5");
  EXPECT_EQ(Value("0 && 1/0"), "0");
  EXPECT_EQ(Value("2 || 1/0"), "1");
  EXPECT_EQ(Value("0 || 0 || y"), "1");
  EXPECT_EQ(Value("3 && 2 && x"), "1");
}

TEST(Expression, FoldsConstants) {
  const auto fold = [](const std::string& text) {
    return Expression::Parse(text, Resolve)->constant();
  };
  EXPECT_EQ(fold("2*B+-1"), 11);
  EXPECT_EQ(fold("roundup(100*B, 512)"), 1024);
  EXPECT_EQ(fold("x"), std::nullopt);
  EXPECT_EQ(fold("7/2"), std::nullopt);  // no value: evaluating it reports that
}

TEST(Expression, ChecksArithmetic) {
  EXPECT_EQ(Value("7/2"),
            "expected a division without a rest (or floor(a,b), ceil(a,b)), found 7 / 2");
  EXPECT_EQ(Value("8/2"), "4");
  EXPECT_EQ(Value("x/0"), "expected a positive divisor, found 7 / 0");
  EXPECT_EQ(Value("x%y"), "expected a positive divisor, found 7 % -3");
  EXPECT_EQ(Value("ceil(x,0)"), "expected a positive divisor, found ceil(7,0)");
  EXPECT_EQ(Value("x+1", kMax), "expected a value within 64 bits, found 9223372036854775807 + 1");
  EXPECT_EQ(Value("x*x", 4000000000),
            "expected a value within 64 bits, found 4000000000 * 4000000000");
  EXPECT_EQ(Value("y-2", 0, -kMax),
            "expected a value within 64 bits, found -9223372036854775807 - 2");
  EXPECT_EQ(Value("-x", std::numeric_limits<int64_t>::min()),
            "expected a value within 64 bits, found -(-9223372036854775808)");
  EXPECT_EQ(Value("roundup(x,2)", kMax),
            "expected a value within 64 bits, found roundup(9223372036854775807,2)");
  EXPECT_EQ(Value("9223372036854775807"), "9223372036854775807");
  EXPECT_EQ(Value("9223372036854775808"),
            "expected a number within 64 bits, found 9223372036854775808 at 0");
  EXPECT_EQ(Value("9000000000GiB"), "expected a number within 64 bits, found 9000000000GiB at 0");
}

TEST(Expression, SaysWhatIsWrong) {
  EXPECT_EQ(Value(""), "expected a number, a name or '(', found the end at 0");
  EXPECT_EQ(Value("3*h"), "expected a variable or parameter that is known here, found 'h' at 2");
  EXPECT_EQ(Value("3*"), "expected a number, a name or '(', found the end at 2");
  EXPECT_EQ(Value("(1+2"), "expected ')', found the end at 4");
  EXPECT_EQ(Value("1 2"), "expected an operator or the end, found '2' at 2");
  EXPECT_EQ(Value("12kB"), "expected an operator or the end, found 'k' at 2");
  EXPECT_EQ(Value("1.5"), "expected an operator or the end, found '.' at 1");
  EXPECT_EQ(Value("sqrt(4)"),
            "expected one of ceil, floor, min, max, roundup, if, found 'sqrt' at 0");
  EXPECT_EQ(Value("ceil(4)"), "expected ',', found ')' at 6");
  EXPECT_EQ(Value("if(1,2)"), "expected ',', found ')' at 6");
  EXPECT_EQ(Value("1 & 2"), "expected an operator or the end, found '&' at 2");
  EXPECT_EQ(Value("\x01"), "expected a number, a name or '(', found byte 1 at 0");
  EXPECT_EQ(Value(std::string(5000, '(')),
            "expected an expression that is less deep, found this one at 40");
  EXPECT_EQ(Value(std::string(5000, '-')),
            "expected an expression that is less deep, found this one at 40");
}

std::string RandomExpression(std::mt19937_64& random, int depth) {
  const auto pick = [&](size_t n) { return static_cast<size_t>(random() % n); };
  const auto part = [&] { return RandomExpression(random, depth - 1); };
  if (depth == 0) return std::string(1, "abc0123"[pick(7)]);
  static constexpr const char* kBinary[] = {"+",  "-",  "*",  "/",  "%",  "<",
                                            "<=", "==", "!=", "&&", "||", ">"};
  static constexpr const char* kFunctions[] = {"min", "max", "ceil", "floor", "roundup"};
  switch (pick(5)) {
    case 0: return std::string(kFunctions[pick(5)]) + "(" + part() + "," + part() + ")";
    case 1: return "if(" + part() + "," + part() + "," + part() + ")";
    case 2: return (pick(2) == 0 ? "-(" : "!(") + part() + ")";
    default: return "(" + part() + " " + kBinary[pick(12)] + " " + part() + ")";
  }
}

// What is known when an expression is parsed is worked out then; the answer, or the
// reason why there is none, is the same as when it is worked out later.
TEST(Expression, ConstantsAndVariablesGiveTheSame) {
  std::mt19937_64 random(5);
  constexpr int64_t kValues[] = {-7, 12, int64_t{1} << 61};
  size_t values = 0, faults = 0;
  for (int i = 0; i < 5000; ++i) {
    const std::string text = RandomExpression(random, 4);
    std::string answers[2];
    for (const bool is_constant : {false, true}) {
      const auto resolve = [&](std::string_view name) {
        const auto index = static_cast<int64_t>(name[0] - 'a');
        return std::optional<Expression::Binding>(
            {is_constant, is_constant ? kValues[index] : index});
      };
      const absl::StatusOr<Expression> expression = Expression::Parse(text, resolve);
      ASSERT_TRUE(expression.ok()) << text << ": " << expression.status();
      int64_t value = 0;
      Fault fault;
      const bool ok = expression->Evaluate(kValues, &value, &fault);
      answers[is_constant ? 1 : 0] = ok ? std::to_string(value) : Expected(fault) + Found(fault);
      ++(ok ? values : faults);
    }
    ASSERT_EQ(answers[0], answers[1]) << text;
  }
  EXPECT_GT(values, 2500u);
  EXPECT_GT(faults, 1250u);
}

// A long sum is not a deep one.
TEST(Expression, MayBeLong) {
  std::string sum = "x";
  for (int i = 0; i < 5000; ++i) sum += "+x";
  EXPECT_EQ(Value(sum, 1), "5001");
}

}  // namespace
}  // namespace memreplay::program
