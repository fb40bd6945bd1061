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
  static const char* TextOf(const CardOption& option) {
    const char* text = std::getenv(option.variable.data());
    return text == nullptr || *text == 0 ? nullptr : text;
  }

  void ReadNumber(const CardOption& option, uint64_t* out) {
    if (const char* text = TextOf(option)) Parse(option, text, out);
  }

  void Parse(const CardOption& option, const char* text, uint64_t* out) {
    const uint64_t max = option.kind == CardOption::kWord ? kMaxBytes : option.max;
    char* end = nullptr;
    const unsigned long long value = std::strtoull(text, &end, 10);
    if (*text < '0' || *text > '9' || *end != 0 || value > max) {
      Reject(option.variable.data(), TextOf(option),
             ("expected a whole number up to " + std::to_string(max)).c_str());
    } else {
      *out = value;
    }
  }

  // Returns whether the option is the second of its words.
  bool IsSecond(const CardOption& option, std::string_view first, std::string_view second) {
    const char* text = TextOf(option);
    if (text == nullptr || text == first) return false;
    if (text == second) return true;
    Reject(option.variable.data(), text, ("expected " + std::string(option.values)).c_str());
    return false;
  }

  void Reject(const char* variable, const char* text, const char* expected) {
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
    read.Reject("MEMREPLAY_CARD", name, error.c_str());
    return settings;
  }
  settings.capacity = card->memory;
  const AssumedOutside outside = AssumeOutside(card->multiprocessors);
  settings.reserve = static_cast<uint64_t>(outside.bytes);
  settings.reserve_reason = Reader::TextOf(kReserve) == nullptr ? outside.reason : "--reserve";
  uint64_t cards = 1;
  read.ReadNumber(kCapacity, &settings.capacity);
  read.ReadNumber(kReserve, &settings.reserve);
  read.ReadNumber(kCards, &cards);
  read.ReadNumber(kCopyLimit, &settings.copy_limit);
  read.ReadNumber(kCudnnWorkspace, &settings.cudnn_workspace);
  read.ReadNumber(kNccl, &settings.nccl);
  read.ReadNumber(kHostMemory, &settings.host_memory);
  if (read.IsSecond(kCompletion, "lagging", "at-once")) {
    settings.completion = Streams::Completion::kAtOnce;
  }
  const char* order = Reader::TextOf(kAddresses);
  if (order != nullptr && std::strncmp(order, "up:", 3) == 0) {
    settings.addresses = AddressOrder::kUpwards;
    read.Parse(kAddresses, order + 3, &settings.below_first_kernel);
  } else if (read.IsSecond(kAddresses, "down", "up")) {
    settings.addresses = AddressOrder::kUpwards;
  }
  settings.cards = static_cast<int>(cards);
  if (settings.error.empty()) settings.card = card;
  return settings;
}

}  // namespace memreplay::card
