#include "synth/config_keys.h"

#include <cctype>
#include <cmath>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"

namespace memreplay::synth {
namespace {

std::string_view Strip(std::string_view text) {
  return ToStd(absl::StripAsciiWhitespace(ToAbsl(text)));
}

// Parses integers, with underscores as Python allows, and their products.
std::optional<int64_t> ParseInteger(std::string_view text) {
  int64_t product = 1;
  while (true) {
    const size_t star = text.find('*');
    std::string digits;
    for (const char c : Strip(text.substr(0, star))) {
      if (c != '_') digits.push_back(c);
    }
    int64_t factor = 0;
    if (!absl::SimpleAtoi(digits, &factor) || __builtin_mul_overflow(product, factor, &product)) {
      return std::nullopt;
    }
    if (star == std::string_view::npos) return product;
    text.remove_prefix(star + 1);
  }
}

absl::Status WrongType(const Setting& setting, std::string_view expected) {
  return absl::InvalidArgumentError(
      StrCat(setting.key, ": expected ", expected, ", found '", setting.value, "'"));
}

// Returns `line` without its comment, which begins at a '#' outside quotes.
std::string_view WithoutComment(std::string_view line) {
  char quote = 0;
  for (size_t i = 0; i < line.size(); ++i) {
    if (quote == 0 && line[i] == '#') return line.substr(0, i);
    if (quote == 0 && (line[i] == '\'' || line[i] == '"')) {
      quote = line[i];
    } else if (line[i] == quote) {
      quote = 0;
    }
  }
  return line;
}

}  // namespace

absl::Status ParseValue(const Setting& setting, int64_t* out) {
  const std::optional<int64_t> parsed = ParseInteger(Strip(setting.value));
  if (!parsed) return WrongType(setting, "an integer");
  *out = *parsed;
  return absl::OkStatus();
}

absl::Status ParseValue(const Setting& setting, double* out) {
  if (!absl::SimpleAtod(ToAbsl(Strip(setting.value)), out) || !std::isfinite(*out)) {
    return WrongType(setting, "a number");
  }
  return absl::OkStatus();
}

absl::Status ParseValue(const Setting& setting, bool* out) {
  const std::string_view value = Strip(setting.value);
  if (value != "True" && value != "False") return WrongType(setting, "True or False");
  *out = value == "True";
  return absl::OkStatus();
}

absl::Status ParseValue(const Setting& setting, std::string* out) {
  std::string_view bare = Strip(setting.value);
  if (bare.size() >= 2 && (bare.front() == '\'' || bare.front() == '"') &&
      bare.back() == bare.front()) {
    bare = bare.substr(1, bare.size() - 2);
  }
  *out = std::string(bare);
  return absl::OkStatus();
}

absl::Status CheckChoice(const Setting& setting, std::string_view value, std::string_view choices) {
  for (const absl::string_view choice : absl::StrSplit(ToAbsl(choices), '|')) {
    if (ToStd(choice) == value) return absl::OkStatus();
  }
  return WrongType(setting, StrCat("one of ", choices));
}

std::string ValueText(bool value) { return value ? "True" : "False"; }
std::string ValueJson(bool value) { return value ? "true" : "false"; }
std::string ValueJson(const std::string& value) {
  std::string json = "\"";
  for (const char c : value) {
    if (c == '"' || c == '\\') json.push_back('\\');
    json.push_back(static_cast<unsigned char>(c) < 0x20 ? '?' : c);
  }
  json.push_back('"');
  return json;
}

absl::StatusOr<std::vector<Setting>> ReadConfigFile(std::string_view text, std::string_view name) {
  std::vector<Setting> settings;
  int line_number = 0;
  for (const absl::string_view whole : absl::StrSplit(ToAbsl(text), '\n')) {
    ++line_number;
    const std::string_view line = Strip(WithoutComment(ToStd(whole)));
    if (line.empty() || line.substr(0, 7) == "import ") continue;
    const size_t equals = line.find('=');
    const std::string_view key = Strip(line.substr(0, equals));
    const bool is_name = !key.empty() && std::all_of(key.begin(), key.end(), [](unsigned char c) {
      return std::isalnum(c) != 0 || c == '_';
    });
    if (equals == std::string_view::npos || !is_name) {
      return absl::InvalidArgumentError(
          StrCat(name, ": line ", line_number, ": expected key = value, found '", line, "'"));
    }
    settings.push_back({std::string(key), std::string(Strip(line.substr(equals + 1)))});
  }
  return settings;
}

std::string_view FindHint(absl::Span<const KeyHint> hints, std::string_view key) {
  for (const KeyHint& hint : hints) {
    if (hint.key == key) return hint.hint;
  }
  return {};
}

}  // namespace memreplay::synth
