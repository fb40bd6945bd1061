#include <algorithm>
#include <cmath>

#include "trace/bytes/json_scanner.h"
#include "trace/program/compiler.h"

namespace memreplay::program {
namespace {

using google::protobuf::Message;
using Places = google::protobuf::TextFormat::ParseInfoTree;
using P = proto::ScheduleProgram;
using S = proto::Statement;
using D = proto::Distribution;
using R = proto::RandomLoad;

}  // namespace

google::protobuf::TextFormat::ParseLocation Compiler::Location(const Where& where, int field,
                                                               int index) {
  if (where.places == nullptr || field == 0) return where.at;
  const auto location = LocationIn(where.places, Field(where, field), index);
  return location.line < 0 ? where.at : location;
}

std::string Compiler::Place(const Where& where, int field, int index) {
  const auto location = Location(where, field, index);
  if (location.line < 0) return where.path;
  return StrCat("line ", location.line + 1, ", column ", location.column + 1, ": ", where.path);
}

std::string Compiler::FieldPlace(const Where& where, int field, int index) {
  std::string place = Place(where, field, index);
  if (field != 0) {
    StrAppend(&place, where.path.empty() ? "" : ".", std::string_view(Field(where, field)->name()));
  }
  if (index >= 0) StrAppend(&place, "[", index, "]");
  return place;
}

bool Compiler::Wrong(const Where& where, int field, int index, std::string_view expected,
                     std::string_view found) {
  const std::string place = FieldPlace(where, field, index);
  error_ = absl::InvalidArgumentError(
      StrCat(place, place.empty() ? "" : ": ", "expected ", expected, ", found ", found));
  return false;
}

Where Compiler::Inside(const Where& where, const Message& message, int field, int index) {
  const Places* places = nullptr;
  if (where.places != nullptr) {
    places = where.places->GetTreeForNested(Field(where, field), index);
  }
  std::string path = StrCat(where.path, where.path.empty() ? "" : ".",
                            std::string_view(Field(where, field)->name()));
  if (index >= 0) StrAppend(&path, "[", index, "]");
  return {&message, std::move(path), places, Location(where, field, index)};
}

std::optional<Expression::Binding> Compiler::Lookup(std::string_view name) const {
  for (size_t i = variables_.size(); i > 0; --i) {
    if (variables_[i - 1].name == name) return Expression::Binding{false, variables_[i - 1].slot};
  }
  const auto it = constants_.find(ToAbsl(name));
  if (it == constants_.end()) return std::nullopt;
  return Expression::Binding{true, it->second};
}

bool Compiler::IsName(std::string_view name) {
  if (name.empty() || (name[0] >= '0' && name[0] <= '9')) return false;
  for (const char c : name) {
    if (!(c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'))) {
      return false;
    }
  }
  static constexpr std::string_view kTaken[] = {"KiB", "MiB",     "GiB", "ceil", "floor",
                                                "min", "roundup", "max", "if"};
  for (const std::string_view taken : kTaken) {
    if (taken == name) return false;
  }
  return true;
}

bool Compiler::Declare(const Where& where, int field, int index, const std::string& name,
                       bool is_index, uint32_t* slot) {
  if (!IsName(name)) return Wrong(where, field, index, "a name", Quote(name));
  if (constants_.contains(name)) {
    return Wrong(where, field, index, "a name that is no parameter", Quote(name));
  }
  *slot = slots_++;
  variables_.push_back({name, *slot, is_index});
  return true;
}

bool Compiler::Value(const Where& where, int field, int index, const std::string& text,
                     uint32_t* number) {
  absl::StatusOr<Expression> expression =
      Expression::Parse(text, [this](std::string_view name) { return Lookup(name); });
  if (!expression.ok()) {
    error_ = absl::InvalidArgumentError(StrCat(FieldPlace(where, field, index), ": ",
                                               ToStd(expression.status().message()), " of ",
                                               Quote(text)));
    return false;
  }
  *number = Add(*std::move(expression), text);
  return true;
}

uint32_t Compiler::AddCopies(absl::Span<const uint32_t> values) {
  const auto first = static_cast<uint32_t>(code_.expressions.size());
  for (const uint32_t value : values) {
    if (value == kNone) {
      Add(Expression());
    } else {
      Add(Expression(code_.expressions[value]), code_.expression_texts[value]);
    }
  }
  return first;
}

bool Compiler::Text(const Where& where, int field, const std::string& text, uint32_t* number) {
  TextTemplate result;
  std::string literal;
  for (size_t at = 0; at < text.size(); ++at) {
    if (text[at] != '{') {
      literal += text[at];
      continue;
    }
    if (text.compare(at, 2, "{{") == 0) {
      literal += text[at++];
      continue;
    }
    const size_t end = text.find('}', at);
    if (end == std::string::npos) return Wrong(where, field, "'}'", Quote(text));
    uint32_t value = kNone;
    if (!Value(where, field, -1, text.substr(at + 1, end - at - 1), &value)) return false;
    result.pieces.push_back({std::exchange(literal, ""), value});
    at = end;
  }
  if (!literal.empty() || result.pieces.empty()) result.pieces.push_back({literal, kNone});
  *number = Append(&code_.texts, std::move(result));
  return true;
}

bool Compiler::Handle(const Where& where, int field, const std::string& text, uint32_t* number) {
  HandleTemplate handle;
  handle.text = text;
  std::string name;
  for (size_t at = 0; at < text.size(); ++at) {
    const auto c = static_cast<unsigned char>(text[at]);
    if (c <= ' ' || c == ']' || c == 0x7f) {
      return Wrong(where, field, "a name with indexes, such as act[mb][l]", Quote(text));
    }
    name += text[at];
    if (c != '[') continue;
    const size_t end = text.find(']', at);
    if (end == std::string::npos) return Wrong(where, field, "']'", Quote(text));
    if (handle.indexes.size() == kMaxIndexes) {
      return Wrong(where, field, StrCat("at most ", kMaxIndexes, " indexes"), Quote(text));
    }
    uint32_t value = kNone;
    if (!Value(where, field, -1, text.substr(at + 1, end - at - 1), &value)) return false;
    handle.indexes.push_back(value);
    name += ']';
    at = end;
  }
  handle.name = names_.try_emplace(name, static_cast<uint32_t>(names_.size())).first->second;
  *number = Append(&code_.handles, std::move(handle));
  return true;
}

bool Compiler::Stream(const Where& where, int field, const std::string& text, uint32_t* number) {
  int64_t named = 0;
  for (const std::string& name : text_.program.streams()) {
    if (name == text) {
      *number = Add(Expression::Constant(named));
      return true;
    }
    ++named;
  }
  if (!Value(where, field, -1, text, number)) return false;
  const std::optional<int64_t> constant = code_.expressions[*number].constant();
  return !constant || (*constant >= 0 && *constant < code_.streams) ||
         Wrong(where, field, StrCat("one of ", code_.streams, " streams"), Quote(text));
}

bool Compiler::Pool(const Where& where, int field, const std::string& text, uint32_t* number) {
  for (int i = 0; i < text_.program.pools_size(); ++i) {
    if (text_.program.pools(i).name() != text) continue;
    *number = static_cast<uint32_t>(i);
    return true;
  }
  return Wrong(where, field, "a pool that `pools` declares", Quote(text));
}

bool Compiler::Label(const Where& where, const S& statement, const std::string& handle,
                     uint32_t* number) {
  LabelTemplate label;
  if (statement.site().empty()) {
    label.name = Append(&code_.texts, {{{handle, kNone}}});
  } else if (!Text(where, S::kSiteFieldNumber, statement.site(), &label.name)) {
    return false;
  }
  if (!statement.tag().empty() && !Text(where, S::kTagFieldNumber, statement.tag(), &label.tag)) {
    return false;
  }
  // Writes the members dt, sh and saved as in the flat format.
  if (!statement.dtype().empty() || statement.shape_size() > 0 || statement.saved()) {
    TextTemplate tensor;
    std::string literal;
    if (!statement.dtype().empty()) {
      literal = "\"dt\":";
      AppendJsonString(statement.dtype(), &literal);
    }
    for (int i = 0; i < statement.shape_size(); ++i) {
      StrAppend(&literal, i > 0 ? "," : literal.empty() ? "\"sh\":[" : ",\"sh\":[");
      uint32_t value = kNone;
      if (!Value(where, S::kShapeFieldNumber, i, statement.shape(i), &value)) return false;
      tensor.pieces.push_back({std::exchange(literal, ""), value});
    }
    if (statement.shape_size() > 0) literal = "]";
    if (statement.saved()) {
      StrAppend(&literal, literal.empty() && tensor.pieces.empty() ? "" : ",", "\"saved\":true");
    }
    tensor.pieces.push_back({literal, kNone});
    label.tensor = Append(&code_.texts, std::move(tensor));
  }
  *number = Append(&code_.labels, label);
  return true;
}

bool Compiler::Weights(const Where& where, const D& distribution, size_t count,
                       DistributionCode* code) {
  if (count == 0) {
    return Wrong(where, D::kDistFieldNumber, "something to choose from", "nothing");
  }
  if (distribution.weights_size() == 0) {
    code->weights.assign(count, 1.0);
    return true;
  }
  code->weights.assign(distribution.weights().begin(), distribution.weights().end());
  double sum = 0;
  for (const double weight : code->weights) sum += weight < 0 ? NAN : weight;
  if (code->weights.size() != count || !std::isfinite(sum) || sum <= 0) {
    return Wrong(where, D::kWeightsFieldNumber, StrCat(count, " weights, none negative, not all 0"),
                 StrCat(code->weights.size(), " weights"));
  }
  return true;
}

bool Compiler::Distribution(const Where& where, const D& distribution, int depth,
                            uint32_t* number) {
  DistributionCode code;
  const std::string& dist = distribution.dist();
  if (!Optional(where, D::kMinFieldNumber, distribution.min(), &code.min) ||
      !Optional(where, D::kMaxFieldNumber, distribution.max(), &code.max) ||
      !Optional(where, D::kRoundFieldNumber, distribution.round(), &code.round)) {
    return false;
  }
  if (dist == "choice") {
    code.kind = DistributionCode::Kind::kChoice;
    for (int i = 0; i < distribution.values_size(); ++i) {
      code.choices.push_back(kNone);
      if (!Value(where, D::kValuesFieldNumber, i, distribution.values(i), &code.choices.back())) {
        return false;
      }
    }
    if (!Weights(where, distribution, code.choices.size(), &code)) return false;
  } else if (dist == "mix") {
    code.kind = DistributionCode::Kind::kMix;
    if (depth > 4) return Wrong(where, D::kDistFieldNumber, "mixes of a few levels", "more");
    for (int i = 0; i < distribution.mix_size(); ++i) {
      const D& part = distribution.mix(i);
      code.choices.push_back(kNone);
      if (!Distribution(Inside(where, part, D::kMixFieldNumber, i), part, depth + 1,
                        &code.choices.back())) {
        return false;
      }
    }
    if (!Weights(where, distribution, code.choices.size(), &code)) return false;
  } else {
    static constexpr std::pair<std::string_view, Draw::Kind> kKinds[] = {
        {"uniform", Draw::Kind::kUniform},
        {"loguniform", Draw::Kind::kLogUniform},
        {"lognormal", Draw::Kind::kLogNormal},
        {"geometric", Draw::Kind::kGeometric}};
    const auto* kind = std::find_if(std::begin(kKinds), std::end(kKinds),
                                    [&](const auto& row) { return row.first == dist; });
    if (kind == std::end(kKinds)) {
      return Wrong(where, D::kDistFieldNumber,
                   "uniform, loguniform, lognormal, geometric, choice or mix", Quote(dist));
    }
    code.draw.kind = kind->second;
    code.draw.mu = distribution.mu();
    code.draw.sigma = distribution.sigma();
    code.draw.mean = distribution.mean();
    const bool is_range =
        kind->second == Draw::Kind::kUniform || kind->second == Draw::Kind::kLogUniform;
    if (is_range && (code.min == kNone || code.max == kNone)) {
      return Wrong(where, D::kDistFieldNumber, "min and max", StrCat(dist, " without them"));
    }
    if (kind->second == Draw::Kind::kLogNormal &&
        !(std::isfinite(code.draw.mu) && std::isfinite(code.draw.sigma) && code.draw.sigma >= 0)) {
      return Wrong(where, D::kSigmaFieldNumber, "finite mu and sigma, sigma not negative",
                   "others");
    }
    if (kind->second == Draw::Kind::kGeometric &&
        !(std::isfinite(code.draw.mean) && code.draw.mean >= 1)) {
      return Wrong(where, D::kMeanFieldNumber, "a mean of at least 1", "another");
    }
  }
  *number = Append(&code_.distributions, std::move(code));
  return true;
}

bool Compiler::Random(const Where& where, const R& random, uint32_t* number) {
  RandomLoadCode code;
  const auto probability = [&](int field, double p) {
    return (p >= 0 && p <= 1) || Wrong(where, field, "a probability", "another number");
  };
  if (!random.has_size()) return Wrong(where, R::kSizeFieldNumber, "a distribution", "none");
  if (!random.has_lifetime()) {
    return Wrong(where, R::kLifetimeFieldNumber, "a distribution", "none");
  }
  if (!Value(where, R::kOpsFieldNumber, -1, random.ops(), &code.ops) ||
      !Optional(where, R::kLiveTargetFieldNumber, random.live_target(), &code.live_target) ||
      !Optional(where, R::kStreamsFieldNumber, random.streams(), &code.streams) ||
      !Distribution(Inside(where, random.size(), R::kSizeFieldNumber, -1), random.size(), 0,
                    &code.size) ||
      !Distribution(Inside(where, random.lifetime(), R::kLifetimeFieldNumber, -1),
                    random.lifetime(), 0, &code.lifetime) ||
      !probability(R::kRecordStreamPFieldNumber, random.record_stream_p()) ||
      !probability(R::kEmptyCachePFieldNumber, random.empty_cache_p())) {
    return false;
  }
  code.record_stream_p = random.record_stream_p();
  code.empty_cache_p = random.empty_cache_p();
  code.keep = random.keep();
  LabelTemplate label;
  label.name = Append(&code_.texts, {{{"random", kNone}}});
  if (!random.tag().empty() && !Text(where, R::kTagFieldNumber, random.tag(), &label.tag)) {
    return false;
  }
  code.label = Append(&code_.labels, label);
  *number = Append(&code_.random_loads, code);
  return true;
}

}  // namespace memreplay::program
