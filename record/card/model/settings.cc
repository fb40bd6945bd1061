#include "record/card/model/settings.h"

#include <cstdlib>
#include <cstring>

#include "hardware/outside_figures.h"

namespace memreplay::card {
namespace {

class Reader {
 public:
  explicit Reader(Settings* settings) : settings_(settings) {}

  // Returns null if the variable is not set.
  static const char* text_of(const CardOption& option) {
    const char* text = std::getenv(option.variable.data());
    return text == nullptr || *text == 0 ? nullptr : text;
  }

  void number(const CardOption& option, std::uint64_t* out) {
    if (const char* text = text_of(option)) parse(option, text, out);
  }

  void parse(const CardOption& option, const char* text, std::uint64_t* out) {
    const std::uint64_t max = option.kind == CardOption::kWord ? kMaxBytes : option.max;
    char* end = nullptr;
    const unsigned long long value = std::strtoull(text, &end, 10);
    if (*text < '0' || *text > '9' || *end != 0 || value > max) {
      wrong(option.variable.data(), text_of(option),
            ("expected a whole number up to " + std::to_string(max)).c_str());
    } else {
      *out = value;
    }
  }

  // Returns whether the option is the second of its words.
  bool is_second(const CardOption& option, std::string_view first, std::string_view second) {
    const char* text = text_of(option);
    if (text == nullptr || text == first) return false;
    if (text == second) return true;
    wrong(option.variable.data(), text, ("expected " + std::string(option.values)).c_str());
    return false;
  }

  void wrong(const char* variable, const char* text, const char* expected) {
    if (!settings_->error.empty()) return;
    settings_->error = std::string(variable) + "=" + text + ": " + expected;
  }

 private:
  Settings* settings_;
};

}  // namespace

Settings SettingsFromEnvironment() {
  Settings settings;
  Reader read(&settings);
  const char* name = std::getenv("MEMREPLAY_CARD");
  if (name == nullptr || *name == 0) name = "rtx-4090";
  std::string error;
  const std::optional<Card> card = FindCard(name, &error);
  if (!card.has_value()) {
    read.wrong("MEMREPLAY_CARD", name, error.c_str());
    return settings;
  }
  settings.capacity = card->memory;
  const AssumedOutside outside = AssumeOutside(card->multiprocessors);
  settings.reserve = static_cast<std::uint64_t>(outside.bytes);
  settings.reserve_reason = Reader::text_of(kReserve) == nullptr ? outside.reason : "--reserve";
  std::uint64_t cards = 1;
  read.number(kCapacity, &settings.capacity);
  read.number(kReserve, &settings.reserve);
  read.number(kCards, &cards);
  read.number(kCopyLimit, &settings.copy_limit);
  read.number(kCudnnWorkspace, &settings.cudnn_workspace);
  read.number(kNccl, &settings.nccl);
  read.number(kHostMemory, &settings.host_memory);
  if (read.is_second(kCompletion, "lagging", "at-once")) {
    settings.completion = Streams::Completion::kAtOnce;
  }
  const char* order = Reader::text_of(kAddresses);
  if (order != nullptr && std::strncmp(order, "up:", 3) == 0) {
    settings.addresses = AddressOrder::kUpwards;
    read.parse(kAddresses, order + 3, &settings.below_first_kernel);
  } else if (read.is_second(kAddresses, "down", "up")) {
    settings.addresses = AddressOrder::kUpwards;
  }
  settings.cards = static_cast<int>(cards);
  if (settings.error.empty()) settings.card = card;
  return settings;
}

}  // namespace memreplay::card
