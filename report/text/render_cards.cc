#include <cstdint>
#include <string_view>
#include <type_traits>
#include <utility>

#include "absl/strings/str_format.h"
#include "hardware/cards.h"
#include "hardware/outside_figures.h"
#include "report/text/render.h"
#include "report/words/sizes.h"
#include "trace/bytes/json_scanner.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

std::string CapabilityText(const Card& card) {
  return StrCat(card.capability / 10, ".", card.capability % 10);
}

std::string MemoryText(uint64_t bytes) { return bytes == 0 ? "-" : StrCat(bytes >> 20, " MiB"); }

class JsonObject {
 public:
  template <typename Value>
  JsonObject& Add(std::string_view key, const Value& value) {
    StrAppend(&json_, json_.size() == 1 ? "" : ", ", "\"", key, "\": ");
    if constexpr (std::is_convertible_v<Value, std::string_view>) {
      AppendJsonString(value, &json_);
    } else {
      StrAppend(&json_, value);
    }
    return *this;
  }
  std::string Done() const { return json_ + "}"; }

 private:
  std::string json_ = "{";
};

}  // namespace

std::string RenderCards() {
  std::string text, group;
  for (const Card& card : AllCards()) {
    if (card.group != group) {
      group = card.group;
      StrAppend(&text, text.empty() ? "" : "\n", group, "\n");
      absl::StrAppendFormat(&text, "  %-29s %11s %11s  %4s %4s  %s\n", "name", "Linux", "Windows",
                            "cc", "SMs", "source of the memory");
    }
    absl::StrAppendFormat(&text, "  %-29s %11s %11s  %4s %4d  %s%s\n", card.name,
                          MemoryText(card.linux_memory), MemoryText(card.windows_memory),
                          CapabilityText(card), card.multiprocessors,
                          card.is_nominal ? "nominal, more than CUDA has: " : "", card.source);
  }
  StrAppend(&text,
            "\nMemory is the total that CUDA reports; Windows is the WDDM driver's, WSL included. "
            "--card NAME takes Linux's\nfigure where there is one, --card NAME:windows the other, "
            "--card custom:12GiB,cc=8.9,sms=46 neither. Of\nit, ",
            FormatSize(kOutsidePerMultiprocessor.high),
            " for each multiprocessor (SM) are assumed to lie outside PyTorch, but at least ",
            FormatSize(AssumeOutside(kFewestMultiprocessors).bytes), ".\n");
  return text;
}

std::string CardsJson() {
  std::string json = "[";
  for (const Card& card : AllCards()) {
    const Capability& capability = CapabilityOf(card);
    JsonObject object;
    object.Add("name", card.name).Add("title", card.title).Add("group", card.group);
    object.Add("capability", CapabilityText(card)).Add("memory", card.memory);
    object.Add("linux_memory", card.linux_memory).Add("windows_memory", card.windows_memory);
    const AssumedOutside outside = AssumeOutside(card.multiprocessors);
    object.Add("nominal", card.is_nominal ? 1 : 0);
    object.Add("context", static_cast<uint64_t>(outside.bytes));
    object.Add("multiprocessors", card.multiprocessors).Add("l2_bytes", card.l2_bytes);
    object.Add("clock_khz", card.clock_khz).Add("memory_clock_khz", card.memory_clock_khz);
    object.Add("memory_bus_bits", card.memory_bus_bits);
    object.Add("threads_per_multiprocessor", capability.threads_per_multiprocessor);
    object.Add("blocks_per_multiprocessor", capability.blocks_per_multiprocessor);
    object.Add("shared_per_multiprocessor", capability.shared_per_multiprocessor);
    object.Add("shared_per_block_optin", capability.shared_per_block_optin);
    const Rates rates = RatesOf(card);
    for (const auto& [name, rate] :
         {std::pair("float32_rate", rates.float32), std::pair("tf32_rate", rates.tf32),
          std::pair("float16_rate", rates.float16), std::pair("bfloat16_rate", rates.bfloat16),
          std::pair("memory_rate", rates.memory), std::pair("host_rate", rates.host)}) {
      object.Add(name, static_cast<uint64_t>(rate));
    }
    object.Add("source", card.source).Add("capability_source", kCapabilitySource);
    object.Add("clock_source", kDataSheetSource).Add("context_source", outside.reason);
    object.Add("rates_source", kRatesSource);
    StrAppend(&json, json.size() == 1 ? "" : ",\n ", object.Done());
  }
  return json + "]\n";
}

}  // namespace memreplay
