#include "report/words/answer.h"

#include "absl/strings/str_format.h"
#include "report/words/sizes.h"
#include "report/words/verdict.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

std::string InspectAnswer(const proto::DeviceReport& device) {
  const proto::Inventory& inventory = device.inventory();
  std::string text;
  if (inventory.is_program()) {
    text = StrCat("a program of ", FormatCount(device.events(), "request"), "; peak ",
                  FormatSize(device.recorded().peak_requested_bytes()), " requested");
  } else if (inventory.has_final_state()) {
    text = StrCat(FormatSize(inventory.final_reserved_bytes()), " reserved at the end, ",
                  FormatSize(inventory.final_allocated_bytes()), " of it allocated; ",
                  FormatCount(device.events(), "event"));
  } else {
    text = StrCat(FormatCount(device.events(), "event"), ", no final state");
  }
  return text;
}

std::string WhatIfAnswer(const proto::DeviceReport& device) {
  std::string text = StrCat("peak reserved ", FormatSize(device.peak_reserved_bytes()));
  const int64_t recorded = device.recorded().peak_reserved_bytes();
  if (recorded > 0) {
    const int64_t change = device.peak_reserved_bytes() - recorded;
    StrAppend(&text, change == 0 ? ", as recorded"
                                 : StrCat(" instead of ", FormatSize(recorded),
                                          PercentChange(change, recorded)));
  }
  StrAppend(&text, "; ",
            device.ooms() == 0
                ? std::string("no out of memory")
                : StrCat("OUT OF MEMORY ", FormatCount(device.ooms(), "time"),
                         device.recorded().ooms() > 0
                             ? StrCat(" (recorded: ", FormatCount(device.recorded().ooms()), ")")
                             : ""));
  return text;
}

}  // namespace

std::string AnswerSentence(const proto::DeviceReport& device) {
  if (device.mode() == proto::Mode::inspect) return InspectAnswer(device);
  if (device.mode() == proto::Mode::as_recorded) return FidelitySentence(device);
  return WhatIfAnswer(device);
}

std::string SettingsText(const proto::DeviceReport& device) {
  std::string text = device.conf().empty() ? std::string("default settings") : device.conf();
  if (device.capacity_bytes() > 0) {
    StrAppend(&text, ", device of ", FormatSize(device.capacity_bytes()));
  }
  return text;
}

std::string PercentChange(int64_t change, int64_t of) {
  if (of == 0) return "";
  return absl::StrFormat(" (%+.1f %%)",
                         100.0 * static_cast<double>(change) / static_cast<double>(of));
}

}  // namespace memreplay
