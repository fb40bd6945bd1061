#include "report/ask/settings_text.h"

#include <algorithm>
#include <optional>

#include "absl/algorithm/container.h"
#include "absl/status/statusor.h"
#include "hardware/cards.h"
#include "report/device/device_report.h"
#include "report/words/new_report.h"
#include "report/words/sizes.h"
#include "report/words/text.h"
#include "sim/settings/conf_lint.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

constexpr Bytes kMaxGiB(1024);  // a larger number cannot be in GiB

// Parses a size, or a card of the table, for which it returns what lies outside PyTorch leaves, and
// says so in `note`. `context` is what lies outside; if absent, it is assumed.
absl::StatusOr<Bytes> ParseCapacity(std::string_view text,
                                    const std::optional<AssumedOutside>& context,
                                    std::string* note) {
  const absl::StatusOr<Bytes> size = ParseSize(text);
  std::string unknown;
  const std::optional<Card> card = FindCard(text, &unknown);
  if (!size.ok() && !card.has_value()) return NeitherSizeNorGpu(text, unknown);
  if (!size.ok()) {
    const Bytes total(card->memory);
    const AssumedOutside outside = context.value_or(AssumeOutside(card->multiprocessors));
    const Bytes taken(static_cast<uint64_t>(outside.bytes));
    *note = StrCat(card->name, ": ", card->title, " has ", FormatSizeExactly(total.signed_value()),
                   " (", card->source, "), of which ", FormatSize(taken),
                   " is assumed to be taken by CUDA's context and kernels (", outside.reason, ")");
    return total < taken ? Bytes() : total - taken;
  }
  const bool has_unit = text.find_first_not_of("0123456789. ") != std::string_view::npos;
  if (*size < MiB(1) && !has_unit) {
    const bool is_card = card.has_value() && *size > kMaxGiB;  // 4090
    return InvalidArgument("expected a size such as 80GiB, found '", text, "', which is ",
                           size->value(), " bytes; did you mean ",
                           is_card ? card->name : StrCat(text, "GiB"), "?");
  }
  return size;
}

proto::Lint::Finding::Severity SeverityOf(LintSeverity severity) {
  switch (severity) {
    case LintSeverity::kNote: return proto::Lint::Finding::note;
    case LintSeverity::kWarning: return proto::Lint::Finding::warning;
    case LintSeverity::kError: break;
  }
  return proto::Lint::Finding::error;
}

}  // namespace

absl::Status SetCapacity(std::string_view text, SettingsRequest* request) {
  if (text == "unlimited") {
    request->unlimited = true;
    return absl::OkStatus();
  }
  const absl::StatusOr<Bytes> size = ParseCapacity(text, std::nullopt, &request->capacity_note);
  if (size.ok()) request->capacity = *size;
  return size.status();
}

AssumedOutside SetContext(std::optional<Bytes> context, std::string_view capacity,
                          int64_t multiprocessors, SettingsRequest* request) {
  std::optional<AssumedOutside> given;
  if (context.has_value()) given = {context->signed_value(), "--context"};
  if (request->capacity_note.empty()) {
    return given.value_or(AssumeOutside(static_cast<int>(multiprocessors)));
  }
  std::string unknown;
  const std::optional<Card> card = FindCard(capacity, &unknown);
  const AssumedOutside outside = given.value_or(AssumeOutside(card->multiprocessors));
  request->capacity = ParseCapacity(capacity, outside, &request->capacity_note).value();
  return outside;
}

std::string ConfOf(std::string_view text) {
  const size_t equals = text.find('=');
  const bool is_variable = equals != std::string_view::npos && equals > 0 &&
                           text.substr(0, equals).find_first_not_of(
                               "ABCDEFGHIJKLMNOPQRSTUVWXYZ_") == std::string_view::npos;
  return std::string(is_variable ? text.substr(equals + 1) : text);
}

proto::Report LintReport(std::string_view conf, const TorchProfile& profile, bool is_given) {
  proto::Report report = NewReport("lint");
  proto::Lint& lint = *report.mutable_lint();
  lint.set_conf(CleanText(conf));
  *lint.mutable_torch() = DescribeChoice(profile, is_given);
  for (const LintFinding& finding : LintAllocatorConf(conf, profile)) {
    proto::Lint::Finding& out = *lint.add_findings();
    out.set_severity(SeverityOf(finding.severity));
    out.set_key(CleanText(finding.key));
    out.set_sentence(CleanText(finding.sentence));
  }
  return report;
}

bool HasErrors(const proto::Lint& lint) {
  return absl::c_any_of(lint.findings(), [](const proto::Lint::Finding& finding) {
    return finding.severity() == proto::Lint::Finding::error;
  });
}

}  // namespace memreplay
