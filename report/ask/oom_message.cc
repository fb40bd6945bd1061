#include "report/ask/oom_message.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "report/ask/enums.h"
#include "report/words/sizes.h"
#include "report/words/version.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

// No device has as much, and sums of a few such sizes still fit.
constexpr double kMostBytes = 1e18;
constexpr std::string_view kTried = "Tried to allocate ";

// One blank between words.
std::string OneLine(std::string_view text) {
  std::string line;
  for (const char c : text) {
    if (absl::ascii_isspace(static_cast<unsigned char>(c))) {
      if (!line.empty() && line.back() != ' ') line += ' ';
    } else {
      line += c;
    }
  }
  return line;
}

// "1.50 GiB" at the beginning of `text`; `length`: how much of it that is.
std::optional<Bytes> LeadingSize(std::string_view text, size_t* length) {
  const size_t digits = std::min(text.find_first_not_of("0123456789."), text.size());
  double number = 0;
  if (digits == 0 || !absl::SimpleAtod(ToAbsl(text.substr(0, digits)), &number)) {
    return std::nullopt;
  }
  std::string_view unit = text.substr(digits);
  size_t skipped = digits;
  if (!unit.empty() && unit[0] == ' ') {
    unit.remove_prefix(1);
    ++skipped;
  }
  constexpr struct {
    std::string_view name;
    double factor;
  } kUnits[] = {{"bytes", 1.0},
                {"KiB", 1024.0},
                {"MiB", 1024.0 * 1024},
                {"GiB", 1024.0 * 1024 * 1024},
                {"TiB", 1024.0 * 1024 * 1024 * 1024}};
  for (const auto& row : kUnits) {
    if (unit.substr(0, row.name.size()) != row.name) continue;
    *length = skipped + row.name.size();
    if (!(number * row.factor < kMostBytes)) return std::nullopt;
    return Bytes(static_cast<uint64_t>(std::llround(number * row.factor)));
  }
  return std::nullopt;
}

// The size right behind `words`.
std::optional<Bytes> SizeAfter(std::string_view text, std::string_view words) {
  const size_t at = text.find(words);
  if (at == std::string_view::npos) return std::nullopt;
  size_t length = 0;
  return LeadingSize(text.substr(at + words.size()), &length);
}

// The size right before `words`.
std::optional<Bytes> SizeBefore(std::string_view text, std::string_view words) {
  const size_t at = text.find(words);
  if (at == std::string_view::npos) return std::nullopt;
  // Number and unit: two words back.
  size_t begin = at;
  for (int word = 0; word < 2; ++word) {
    while (begin > 0 && text[begin - 1] == ' ') --begin;
    while (begin > 0 && text[begin - 1] != ' ' && text[begin - 1] != '(') --begin;
  }
  size_t length = 0;
  return LeadingSize(text.substr(begin), &length);
}

absl::Status Missing(std::string_view what) {
  return absl::InvalidArgumentError(
      StrCat("expected an out-of-memory message of PyTorch; its text does not tell ", what));
}

absl::Status MissingSize(std::string_view what) {
  return Missing(StrCat(what, ", as a size of less than 10^18 bytes"));
}

template <typename... Choices>
std::optional<Bytes> FirstOf(const Choices&... choices) {
  std::optional<Bytes> first;
  ((first = first.has_value() ? first : choices), ...);
  return first;
}

}  // namespace

absl::StatusOr<OomMessageNumbers> ParseOomMessage(std::string_view raw) {
  const std::string line = OneLine(raw);
  const size_t tried_at = line.rfind(kTried);
  if (tried_at == std::string::npos) return Missing("what was tried (\"Tried to allocate\")");
  const std::string_view text = std::string_view(line).substr(tried_at);

  OomMessageNumbers message;
  const std::optional<Bytes> tried = SizeAfter(text, kTried);
  if (!tried.has_value()) return MissingSize("how much was tried");
  message.numbers.tried = *tried;

  // 2.0: "(GPU 0; 15.78 GiB total capacity; 14.25 GiB already allocated; 1.00 MiB
  // free; 14.50 GiB reserved in total by PyTorch)".
  const bool is_2_0 = text.find("already allocated") != std::string_view::npos;
  const size_t gpu = text.find("GPU ");
  if (gpu != std::string_view::npos) {
    const std::string_view number = text.substr(gpu + 4);
    const size_t digits = number.find_first_not_of("0123456789");
    if (!absl::SimpleAtoi(ToAbsl(number.substr(0, digits)), &message.device)) message.device = 0;
  }
  message.numbers.capacity =
      FirstOf(SizeAfter(text, "total capacity of "), SizeAfter(text, "total capacty of "),
              SizeBefore(text, " total capacity"));
  const std::optional<Bytes> free =
      is_2_0 ? SizeBefore(text, " free;") : FirstOf(SizeBefore(text, " is free"));
  if (!free.has_value()) return MissingSize("what is free on the device");
  message.numbers.device_free = *free;

  message.numbers.limit = SizeBefore(text, " allowed;");
  message.private_pools = SizeBefore(text, " allocated in private pools");
  message.in_use_by_process = SizeAfter(text, "this process has ");
  const std::optional<Bytes> allocated = is_2_0 ? SizeBefore(text, " already allocated")
                                                : SizeBefore(text, " is allocated by PyTorch");
  if (!allocated.has_value()) return MissingSize("what PyTorch has allocated");
  message.numbers.allocated = *allocated;
  std::optional<Bytes> unallocated = SizeBefore(text, " is reserved by PyTorch but unallocated");
  if (is_2_0) {
    const std::optional<Bytes> reserved = SizeBefore(text, " reserved in total by PyTorch");
    if (reserved.has_value()) {
      unallocated = *reserved > *allocated ? *reserved - *allocated : Bytes();
    } else {
      // Before 1.4: what is cached beyond what is allocated.
      unallocated = SizeBefore(text, " cached)");
    }
  }
  if (!unallocated.has_value()) return MissingSize("what PyTorch holds unallocated");
  message.numbers.reserved_unallocated = *unallocated;
  message.layout = is_2_0 && text.find(" cached)") != std::string_view::npos ? "1.0 to 1.3"
                   : is_2_0                                                  ? "2.0"
                   : text.find("total capacty of") != std::string_view::npos ? "2.1"
                   : message.private_pools.has_value()                       ? "2.4 and later"
                                                                             : "2.2 and later";
  return message;
}

proto::Report OomMessageReport(const OomMessageNumbers& message) {
  const OomNumbers& numbers = message.numbers;
  proto::Report report;
  report.set_schema_version(kReportSchemaVersion);
  report.set_tool_version(kVersion);
  report.set_command("oom");
  report.set_format("message");
  proto::OutOfMemory& oom = *report.mutable_oom();
  const Bytes obtainable = Obtainable(numbers);
  const OomVerdict verdict = JudgeNumbers(numbers);
  oom.set_verdict(VerdictOf(verdict));
  oom.set_event_index(-1);
  oom.set_recorded(true);
  oom.set_requested_bytes(numbers.tried.signed_value());
  oom.set_segment_bytes(numbers.tried.signed_value());
  oom.set_obtainable_bytes(obtainable.signed_value());
  oom.set_ooms(1);
  if (verdict == OomVerdict::kRefusedWithFree) {
    oom.set_sentence(StrCat("the driver refused ", FormatSize(numbers.tried), " although ",
                            FormatSize(numbers.device_free),
                            " are free by its own count: the free memory is another device's, or "
                            "Windows or WSL count memory that a process cannot get, or a limit of "
                            "the process or container is met; the allocator is not the cause"));
  } else if (verdict == OomVerdict::kTrueShortage) {
    oom.set_sentence(StrCat("no packing would have served ", FormatSize(numbers.tried), ": only ",
                            FormatSize(obtainable),
                            " is free or held unallocated; the program needs less, or the card "
                            "more, by ",
                            FormatSize(numbers.tried - obtainable)));
  } else {
    oom.set_sentence(StrCat("there was room, in pieces: ", FormatSize(obtainable),
                            " free or held unallocated for ", FormatSize(numbers.tried),
                            "; a snapshot tells which setting would have served it"));
  }
  proto::MemoryUse& use = *oom.mutable_use();
  const Bytes reserved = numbers.allocated + numbers.reserved_unallocated;
  use.set_reserved_bytes(reserved.signed_value());
  use.set_device_free_bytes(numbers.device_free.signed_value());
  use.set_live_requested_bytes(
      (numbers.allocated - std::min(numbers.allocated, message.private_pools.value_or(Bytes())))
          .signed_value());
  use.set_shared_free_bytes(numbers.reserved_unallocated.signed_value());
  use.set_private_pool_free_bytes(message.private_pools.value_or(Bytes()).signed_value());
  if (numbers.capacity.has_value()) {
    use.set_capacity_bytes(numbers.capacity->signed_value());
    use.set_capacity_source("given");
    const Bytes known = reserved + numbers.device_free;
    if (known <= *numbers.capacity) {
      use.set_outside_bytes((*numbers.capacity - known).signed_value());
    } else {
      oom.add_notes(StrCat("what PyTorch holds and what is free are ",
                           FormatSize(known - *numbers.capacity),
                           " more than the card has: part of it lies in system memory (the "
                           "fallback of Windows and WSL), or on another card"));
    }
    if (numbers.tried > *numbers.capacity) {
      oom.add_notes("the request is larger than the card");
    }
  }
  if (message.private_pools.has_value()) {
    oom.add_notes(StrCat(
        "what the message calls ", FormatSize(*message.private_pools),
        " allocated in private pools are free blocks of those pools, which other requests cannot "
        "use; they are not counted as obtainable"));
  }
  oom.add_notes(StrCat("read as a message of PyTorch ", message.layout,
                       "; its sizes have two decimals, so that sums are good to 1 % of a unit"));
  return report;
}

}  // namespace memreplay
