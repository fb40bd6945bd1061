#include "record/card/settings.h"

#include <cstdlib>
#include <cstring>

namespace memreplay::card {
namespace {

class Reader {
 public:
  explicit Reader(Settings* settings) : settings_(settings) {}

  void number(const char* variable, std::uint64_t most, std::uint64_t* out) {
    const char* text = std::getenv(variable);
    if (text != nullptr && *text != 0) parse(variable, text, most, out);
  }

  void parse(const char* variable, const char* text, std::uint64_t most, std::uint64_t* out) {
    char* end = nullptr;
    const unsigned long long value = std::strtoull(text, &end, 10);
    if (*text == 0 || *text == '-' || *end != 0 || value > most) {
      wrong(variable, text, ("expected a whole number up to " + std::to_string(most)).c_str());
    } else {
      *out = value;
    }
  }

  // One of two words; `first` if the variable is not set.
  bool is_second(const char* variable, const char* first, const char* second) {
    const char* text = std::getenv(variable);
    if (text == nullptr || *text == 0 || std::strcmp(text, first) == 0) return false;
    if (std::strcmp(text, second) == 0) return true;
    wrong(variable, text, (std::string("expected ") + first + " or " + second).c_str());
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
  const Card* card = FindCard(name, &error);
  if (card == nullptr) {
    read.wrong("MEMREPLAY_CARD", name, error.c_str());
    return settings;
  }
  settings.capacity = card->memory;
  settings.reserve = kContextBytes;
  std::uint64_t cards = 1;
  // More than any card has, and small enough for sums of a few of them.
  constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 40;
  read.number("MEMREPLAY_CARD_CAPACITY", kMostBytes, &settings.capacity);
  read.number("MEMREPLAY_CARD_RESERVE", kMostBytes, &settings.reserve);
  read.number("MEMREPLAY_CARD_COUNT", kMostCards, &cards);
  read.number("MEMREPLAY_CARD_COPY_LIMIT", kMostBytes, &settings.copy_limit);
  read.number("MEMREPLAY_CARD_CUDNN_WORKSPACE", kMostBytes, &settings.cudnn_workspace);
  read.number("MEMREPLAY_CARD_NCCL", kMostBytes, &settings.nccl);
  if (read.is_second("MEMREPLAY_CARD_COMPLETION", "lagging", "at-once")) {
    settings.completion = Streams::Completion::kAtOnce;
  }
  if (const char* order = std::getenv("MEMREPLAY_CARD_ADDRESSES");
      order != nullptr && std::strncmp(order, "upwards:", 8) == 0) {
    settings.addresses = AddressOrder::kUpwards;
    read.parse("MEMREPLAY_CARD_ADDRESSES", order + 8, kMostBytes, &settings.below_first_kernel);
  } else if (read.is_second("MEMREPLAY_CARD_ADDRESSES", "chunks", "upwards")) {
    settings.addresses = AddressOrder::kUpwards;
  }
  settings.cards = static_cast<int>(cards);
  if (settings.error.empty()) settings.card = card;
  return settings;
}

}  // namespace memreplay::card
