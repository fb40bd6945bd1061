#include <algorithm>
#include <string>
#include <string_view>
#include <unordered_map>

#include "absl/algorithm/container.h"
#include "absl/strings/str_format.h"
#include "report/run/run_walk.h"
#include "report/words/stack_names.h"
#include "report/words/text.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

// Returns whether spreadsheets read a text as a formula, by its first character.
bool IsFormula(std::string_view text) {
  constexpr std::string_view kFirst[] = {"=", "+", "-", "@", "\t", "\r", "＝", "＋", "－", "＠"};
  return absl::c_any_of(kFirst, [&](std::string_view first) { return text.starts_with(first); });
}

// Returns a cell of text.
std::string Quoted(std::string_view text) {
  const bool is_formula = IsFormula(text);
  if (!is_formula && text.find_first_of(",\"\r\n") == std::string_view::npos) {
    return std::string(text);
  }
  std::string quoted = is_formula ? "\"'" : "\"";
  for (const char c : text) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + "\"";
}

}  // namespace

absl::Status WriteCsv(const Schedule& schedule, const RunLog& log, bool header, ByteSink& sink) {
  BufferedOutput output(sink);
  std::string& out = output.text();
  const Trace& trace = schedule.trace();
  if (header) {
    out +=
        "device,position,time_us,event,address,size,stream,reserved_bytes,active_bytes,"
        "allocated_bytes,requested_bytes,where\n";
  }
  StackNames names(trace);
  std::unordered_map<uint32_t, std::string> labels;  // by stack
  const auto label = [&](uint32_t stack) -> const std::string& {
    std::string& text = labels[stack];
    if (text.empty() && stack != kNoStack) text = Quoted(names.Label(stack));
    return text;
  };
  RunWalk walk(schedule, log);
  while (walk.Next()) {
    StrAppend(&out, schedule.device(), ",", log.positions[walk.event()], ",");
    if (walk.has_times()) StrAppend(&out, walk.time_us());
    StrAppend(&out, ",", EventKindName(walk.kind()), ",");
    std::string where;
    Address address;
    Bytes size;
    uint32_t stream = 0;
    bool has_place = true;
    if (const RunLog::Other* other = walk.other(); other != nullptr) {
      address = other->what.address;
      size = other->what.size;
      stream = other->what.stream;
      has_place = !HasText(other->what.kind);
      where = has_place ? label(other->what.text_or_stack)
                        : Quoted(CleanText(trace.strings[other->what.text_or_stack]));
    } else {
      const RunLog::Allocation& allocation = log.allocations[walk.allocation()];
      address = allocation.address;
      size = allocation.requested_size;
      stream = allocation.stream;
      where = label(allocation.stack);
    }
    if (has_place && walk.kind() != EventKind::kOom) {
      absl::StrAppendFormat(&out, "%#x", address.value());
    }
    out += ',';
    if (has_place) StrAppend(&out, size.value());
    out += ',';
    if (has_place) absl::StrAppendFormat(&out, "%#x", schedule.stream_handle(stream).value());
    const Usage& usage = walk.usage();
    StrAppend(&out, ",", usage.reserved().value(), ",", usage.active().value(), ",",
              usage.allocated().value(), ",", usage.requested().value(), ",", where, "\n");
    output.MaybeFlush();
  }
  return output.Finish();
}

}  // namespace memreplay
