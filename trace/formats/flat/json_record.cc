#include "trace/formats/flat/json_record.h"

#include <optional>

#include "trace/value/strings.h"
#include "trace/value/utf8.h"

namespace memreplay {
namespace {

using Type = JsonValue::Type;

}  // namespace

bool JsonRecord::Scan(std::string_view line, uint64_t begin, uint64_t number) {
  line_ = line;
  begin_ = begin;
  number_ = number;
  held_.clear();
  if (auto error = ScanJsonObject(line_, &members_)) {
    return FailAt(error->offset, error->expected, error->found);
  }
  for (JsonMember& member : members_) {
    if (member.key.find('\\') != std::string_view::npos) {
      member.key = Hold(UnescapeJson(member.key));
    }
  }
  return true;
}

bool JsonRecord::FailAt(size_t offset, std::string_view expected, std::string_view found) {
  error_ = absl::InvalidArgumentError(StrCat("line ", number_, ", byte ", begin_ + offset,
                                             ": expected ", expected, ", found ", found));
  return false;
}

bool JsonRecord::Fail(std::string_view place, std::string_view expected, std::string_view found) {
  return FailAt(static_cast<size_t>(place.data() - line_.data()), expected, found);
}

bool JsonRecord::Fail(const JsonMember& member, std::string_view expected) {
  return Fail(member.value.raw, StrCat(expected, " for \"", member.key, "\""),
              Describe(member.value));
}

bool JsonRecord::Missing(std::string_view key) {
  const std::string what = kind_ == "h" ? "the header" : StrCat("a record \"", kind_, "\"");
  return FailAt(0, StrCat("a member \"", key, "\" in ", what), "none");
}

bool JsonRecord::ReadKind() {
  const JsonMember* k = Find("k");
  return k == nullptr ? FailAt(0, "a member \"k\"", "none") : String(*k, &kind_);
}

std::string JsonRecord::Describe(const JsonValue& value) {
  const std::string_view shown = CutText(value.raw, 40);
  std::string text = value.type == Type::kString ? StrCat("\"", shown, "\"") : std::string(shown);
  if (shown.size() < value.raw.size()) text += "...";
  return text;
}

std::string_view JsonRecord::Hold(std::string text) {
  held_.push_back(std::move(text));
  return held_.back();
}

std::string_view JsonRecord::Text(const JsonValue& value) {
  return value.has_escape ? Hold(UnescapeJson(value.raw)) : value.raw;
}

const JsonMember* JsonRecord::Find(std::string_view key) {
  for (JsonMember& member : members_) {
    if (member.key == key) {
      member.used = true;
      return &member;
    }
  }
  return nullptr;
}

bool JsonRecord::Unsigned(const JsonMember& member, uint64_t* value) {
  const auto parsed =
      member.value.type == Type::kNumber ? ParseUint64(member.value.raw) : std::nullopt;
  if (!parsed) return Fail(member, "an integer from 0 to 18446744073709551615");
  *value = *parsed;
  return true;
}

bool JsonRecord::Signed(const JsonMember& member, int64_t* value) {
  const auto parsed =
      member.value.type == Type::kNumber ? ParseInt64(member.value.raw) : std::nullopt;
  if (!parsed) return Fail(member, "a 64-bit integer");
  *value = *parsed;
  return true;
}

bool JsonRecord::Below(const JsonMember& member, uint64_t limit, uint64_t* value) {
  if (!Unsigned(member, value)) return false;
  return *value < limit || Fail(member, StrCat("an integer below ", limit));
}

bool JsonRecord::String(const JsonMember& member, std::string_view* text) {
  if (member.value.type != Type::kString) return Fail(member, "a string");
  *text = Text(member.value);
  return true;
}

bool JsonRecord::Bool(const JsonMember& member, bool* value) {
  if (member.value.type != Type::kTrue && member.value.type != Type::kFalse) {
    return Fail(member, "true or false");
  }
  *value = member.value.type == Type::kTrue;
  return true;
}

bool JsonRecord::Double(const JsonMember& member, double* value) {
  const auto parsed =
      member.value.type == Type::kNumber ? ParseJsonDouble(member.value.raw) : std::nullopt;
  if (!parsed) return Fail(member, "a number");
  *value = *parsed;
  return true;
}

bool JsonRecord::Array(const JsonMember& member, std::vector<JsonValue>* elements) {
  if (member.value.type != Type::kArray) return Fail(member, "a list");
  ScanJsonArray(member.value.raw, elements);  // cannot fail: the line's grammar was checked
  return true;
}

bool JsonRecord::Numbers(const JsonMember& member, std::vector<uint64_t>* numbers) {
  std::vector<JsonValue> elements;
  if (!Array(member, &elements)) return false;
  numbers->clear();
  for (const JsonValue& element : elements) {
    const auto parsed = element.type == Type::kNumber ? ParseUint64(element.raw) : std::nullopt;
    if (!parsed) {
      return Fail(element.raw, StrCat("non-negative integers in \"", member.key, "\""),
                  Describe(element));
    }
    numbers->push_back(*parsed);
  }
  return true;
}

bool JsonRecord::Pairs(const JsonMember& member,
                       std::vector<std::pair<uint64_t, uint64_t>>* pairs) {
  std::vector<JsonValue> elements;
  if (!Array(member, &elements)) return false;
  pairs->clear();
  for (const JsonValue& element : elements) {
    const JsonMember pair{member.key, element};
    std::vector<uint64_t> numbers;
    if (!Numbers(pair, &numbers)) return false;
    if (numbers.size() != 2) return Fail(pair, "pairs of integers");
    pairs->push_back({numbers[0], numbers[1]});
  }
  return true;
}

bool JsonRecord::Pool(const JsonMember& member, PoolId* pool) {
  std::vector<uint64_t> numbers;
  if (!Numbers(member, &numbers)) return false;
  if (numbers.size() != 2) return Fail(member, "a pair of integers");
  *pool = {numbers[0], numbers[1]};
  return true;
}

bool JsonRecord::Finish(Diagnostics* diagnostics) {
  for (const JsonMember& member : members_) {
    if (member.used) continue;
    diagnostics->Add(DiagnosticKind::kUnknownKey, PlaceOf(member.value),
                     StrCat("key '", member.key, "'"));
    // Find() marks only one of two equal keys, so the other is still unused.
    for (const JsonMember& other : members_) {
      if (other.used && other.key == member.key) {
        return Fail(member.value.raw, "each key once", StrCat("\"", member.key, "\" again"));
      }
    }
  }
  return true;
}

}  // namespace memreplay
