#include "hardware/cards.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "hardware/card_rows.h"

namespace memreplay {
namespace {

// One block may use the memory of a multiprocessor less the 1 KiB that the system keeps.
constexpr Capability kCapabilities[] = {
    {60, 2048, 32, 65536, 49152, 128, 0, 3},       {61, 2048, 32, 98304, 49152, 256, 0, 3},
    {70, 2048, 32, 98304, 98304, 128, 1024, 3},    {75, 1024, 16, 65536, 65536, 128, 1024, 3},
    {80, 2048, 32, 167936, 166912, 128, 2048, 4},  {86, 1536, 16, 102400, 101376, 256, 1024, 4},
    {87, 1536, 16, 167936, 166912, 256, 2048, 4},  {89, 1536, 24, 102400, 101376, 256, 1024, 4},
    {90, 2048, 32, 233472, 232448, 256, 4096, 5},  {100, 2048, 32, 233472, 232448, 256, 8192, 5},
    {103, 2048, 32, 233472, 232448, 256, 8192, 5}, {120, 1536, 32, 102400, 101376, 256, 1024, 5},
    {121, 1536, 32, 102400, 101376, 256, 1024, 5},
};

constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr uint64_t kGiB = uint64_t{1} << 30;

constexpr double kNvlinkToHost = 450e9;  // of GH200, in one direction

char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }
bool IsWordChar(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.'; }

// Returns the word characters of `text` in lower case.
std::string Plain(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (IsWordChar(Lower(c))) out += Lower(c);
  }
  return out;
}

std::vector<std::string> WordsOf(std::string_view text) {
  std::vector<std::string> words(1);
  for (const char c : text) {
    if (IsWordChar(Lower(c))) {
      words.back() += Lower(c);
    } else if (!words.back().empty()) {
      words.emplace_back();
    }
  }
  if (words.back().empty()) words.pop_back();
  return words;
}

bool IsSlice(const Card& card) { return card.group == "MIG slices"; }

// Returns true for "4090" and rtx-4090, but false for "60" and rtx-4060.
bool NameEndsWith(const Card& card, const std::string& plain) {
  const size_t dash = card.name.find('-');
  return dash != std::string::npos && Plain(std::string_view(card.name).substr(dash + 1)) == plain;
}

bool HasWords(const Card& card, const std::vector<std::string>& words) {
  const std::string name = Plain(card.name), title = Plain(card.title);
  for (const std::string& word : words) {
    if (name.find(word) == std::string::npos && title.find(word) == std::string::npos) return false;
  }
  return !words.empty();
}

std::string Names(const std::vector<const Card*>& cards) {
  std::string names;
  for (const Card* card : cards) names += (names.empty() ? "" : ", ") + card->name;
  return names;
}

const Card* FindByName(std::string_view text, std::string* error) {
  const std::string plain = Plain(text);
  const std::vector<std::string> words = WordsOf(text);
  std::vector<const Card*> wholes, ends, cards, slices;
  for (const Card& card : AllCards()) {
    if (Plain(card.name) == plain) return &card;
    if (Plain(card.title) == plain) wholes.push_back(&card);
    // "4090" is enough for rtx-4090, but "rtx" is not for titan-rtx.
    if (plain.find_first_of("0123456789") != std::string::npos && NameEndsWith(card, plain)) {
      ends.push_back(&card);
    }
    if (HasWords(card, words)) (IsSlice(card) ? slices : cards).push_back(&card);
  }
  for (const auto* found : {&wholes, &ends, &cards, &slices}) {
    if (found->size() == 1) return found->front();
    if (found->size() < 2) continue;
    *error = "several GPUs match: " + Names(*found);
    return nullptr;
  }
  // Collects the GPUs that have the most characters in the places of `text`, by number from the
  // front or from the back.
  constexpr size_t kMaxSimilar = 8;
  std::vector<const Card*> similar;
  size_t most = std::max<size_t>(plain.size() / 2, 3);
  for (const Card& card : AllCards()) {
    const std::string name = Plain(card.name);
    size_t front = 0, back = 0;
    for (size_t i = 0; i < std::min(name.size(), plain.size()); ++i) {
      front += name[i] == plain[i] ? 1 : 0;
      back += name[name.size() - 1 - i] == plain[plain.size() - 1 - i] ? 1 : 0;
    }
    const size_t same = std::max(front, back);
    if (same < most) continue;
    if (same > most) similar.clear();
    most = same;
    similar.push_back(&card);
  }
  similar.resize(std::min(similar.size(), kMaxSimilar));
  *error = "no such GPU; --card list prints the " + std::to_string(AllCards().size()) +
           " there are" + (similar.empty() ? "" : ", among them " + Names(similar)) +
           "; custom:12GiB,cc=8.9,sms=46 is one of your own";
  return nullptr;
}

// Parses a whole number; returns nullopt if `text` is anything else or above `max`.
std::optional<uint64_t> ParseNumber(std::string_view text, uint64_t max) {
  uint64_t value = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return std::nullopt;
    value = value * 10 + static_cast<uint64_t>(c - '0');
    if (value > max) return std::nullopt;
  }
  return text.empty() ? std::nullopt : std::optional(value);
}

// Parses "12GiB", "11.5GiB", "12282MiB" or a number of bytes.
std::optional<uint64_t> ParseMemory(std::string_view text) {
  uint64_t unit = 1;
  for (const auto& [suffix, bytes] : {std::pair("GiB", kGiB), std::pair("MiB", kMiB)}) {
    if (!text.ends_with(suffix)) continue;
    unit = bytes;
    text.remove_suffix(3);
  }
  const uint64_t most = (uint64_t{1} << 50) / unit;
  const size_t point = text.find('.');
  if (point == std::string_view::npos || unit == 1) {
    const std::optional<uint64_t> whole = ParseNumber(text, most);
    return whole.has_value() ? std::optional(*whole * unit) : std::nullopt;
  }
  const std::string_view rest = text.substr(point + 1);
  const std::optional<uint64_t> whole = ParseNumber(text.substr(0, point), most);
  const std::optional<uint64_t> part = ParseNumber(rest, 999);
  if (!whole.has_value() || !part.has_value() || rest.size() > 3) return std::nullopt;
  uint64_t scale = 1;
  for (size_t i = 0; i < rest.size(); ++i) scale *= 10;
  return *whole * unit + *part * unit / scale;
}

std::optional<Card> CustomCard(std::string_view text, std::string* error) {
  constexpr char kForm[] = "expected custom:SIZE,cc=MAJOR.MINOR,sms=N";
  Card card;
  card.name = text;
  card.title = "custom GPU";
  card.group = "custom";
  card.source = "given";
  std::string_view rest = text.substr(std::string_view("custom:").size());
  while (true) {
    const size_t comma = rest.find(',');
    const std::string_view part = rest.substr(0, comma);
    if (part.substr(0, 3) == "cc=") {
      const size_t point = part.find('.');
      if (point == std::string_view::npos) return *error = kForm, std::nullopt;
      const std::optional<uint64_t> major = ParseNumber(part.substr(3, point - 3), 99);
      const std::optional<uint64_t> minor = ParseNumber(part.substr(point + 1), 9);
      if (!major.has_value() || !minor.has_value()) return *error = kForm, std::nullopt;
      card.capability = static_cast<int>(*major * 10 + *minor);
      if (CapabilityOf(card).number == 0) {
        *error = std::string(part) + " is none of";
        for (const Capability& one : kCapabilities) {
          *error += " " + std::to_string(one.number / 10) + "." + std::to_string(one.number % 10);
        }
        return std::nullopt;
      }
    } else if (part.substr(0, 4) == "sms=") {
      const std::optional<uint64_t> number = ParseNumber(part.substr(4), 1024);
      if (number.value_or(0) == 0) return *error = kForm, std::nullopt;
      card.multiprocessors = static_cast<int>(*number);
    } else {
      const std::optional<uint64_t> memory = ParseMemory(part);
      if (memory.value_or(0) == 0 || card.memory != 0) return *error = kForm, std::nullopt;
      card.memory = card.linux_memory = card.windows_memory = *memory;
    }
    if (comma == std::string_view::npos) break;
    rest.remove_prefix(comma + 1);
  }
  if (card.memory == 0 || card.capability == 0 || card.multiprocessors == 0) {
    return *error = kForm, std::nullopt;
  }
  return card;
}

}  // namespace

const std::vector<Card>& AllCards() {
  static const std::vector<Card>* const cards = [] {
    auto* made = new std::vector<Card>;
    for (size_t i = 0; i < kCardRowCount; ++i) {
      const CardRow& row = kCardRows[i];
      Card card;
      card.name = row.name;
      card.title = row.title;
      card.group = row.group;
      card.capability = row.capability;
      card.linux_memory = row.linux_memory;
      card.windows_memory = row.windows_memory;
      card.memory = row.linux_memory != 0 ? row.linux_memory : row.windows_memory;
      card.is_nominal = row.is_nominal;
      card.multiprocessors = row.multiprocessors;
      card.l2_bytes = row.l2_kib * 1024;
      card.clock_khz = row.clock_mhz * 1000;
      card.memory_clock_khz = row.memory_clock_mhz * 1000;
      card.memory_bus_bits = row.memory_bus_bits;
      card.tensor_tflops = row.tensor_tflops;
      card.pcie_lanes = row.pcie_lanes;
      card.source = row.source;
      made->push_back(std::move(card));
    }
    return made;
  }();
  return *cards;
}

std::optional<Card> FindCard(std::string_view text, std::string* error) {
  if (text.substr(0, 7) == "custom:") return CustomCard(text, error);
  const bool windows = text.ends_with(":windows");
  const bool on_linux = text.ends_with(":linux");
  const Card* found =
      FindByName(text.substr(0, windows || on_linux ? text.rfind(':') : text.size()), error);
  if (found == nullptr) return std::nullopt;
  Card card = *found;
  if (windows) card.memory = card.windows_memory;
  if (on_linux) card.memory = card.linux_memory;
  if (card.memory == 0) {
    *error = std::string("no figure of this GPU's memory on ") + (windows ? "Windows" : "Linux") +
             " was found; --card list has those that were";
    return std::nullopt;
  }
  return card;
}

bool SharesHostMemory(const Card& card) {
  return card.capability == 87 || card.capability == 110 || card.capability == 121;
}

const Capability& CapabilityOf(const Card& card) {
  static constexpr Capability kNone;
  for (const Capability& capability : kCapabilities) {
    if (capability.number == card.capability) return capability;
  }
  return kNone;
}

Rates RatesOf(const Card& card) {
  Rates rates;
  const bool is_shared = IsSlice(card) || SharesHostMemory(card);
  if (is_shared || card.clock_khz == 0 || card.memory_clock_khz == 0) return rates;
  const Capability& capability = CapabilityOf(card);
  const double clocks = card.multiprocessors * 1e3 * card.clock_khz;
  rates.float32 = clocks * capability.float32_per_clock;
  // GeForce GPUs halve it for sums in float32. Those called GTX have no tensor cores.
  const bool is_geforce = card.group.substr(0, 7) == "GeForce";
  const bool is_gtx = card.name.substr(0, 3) == "gtx";
  rates.float16 = is_gtx ? 0 : clocks * capability.float16_per_clock / (is_geforce ? 2 : 1);
  if (card.tensor_tflops != 0) rates.float16 = card.tensor_tflops * 1e12;
  rates.float16 = std::max(rates.float16, rates.float32);
  const bool is_ampere = card.capability >= 80;
  rates.bfloat16 = is_ampere ? rates.float16 : rates.float32;
  rates.tf32 = is_ampere ? rates.float16 / 2 : rates.float32;
  rates.memory = 2e3 * card.memory_clock_khz * card.memory_bus_bits / 8;
  // 8 GT/s in generation 3, of which 128 bits of 130 are data.
  const double lane = 1e9 * (1 << (capability.pcie_generation - 3)) * 128 / 130;
  const bool is_grace = card.name.substr(0, 5) == "gh200";
  rates.host = is_grace ? kNvlinkToHost : lane * card.pcie_lanes;
  return rates;
}

std::optional<uint64_t> TotalOfCardWith(uint64_t bytes) {
  constexpr uint64_t kSpread = 160 * kMiB;  // of one kind of board
  uint64_t least = ~uint64_t{0}, most = 0;
  for (const Card& card : AllCards()) {
    if (IsSlice(card)) continue;
    for (const uint64_t total : {card.linux_memory, card.windows_memory}) {
      if (total < bytes || total - bytes > kMaxOutsideBytes) continue;
      if (total < least) least = total;
      if (total > most) most = total;
    }
  }
  if (most == 0 || most - least > kSpread) return std::nullopt;
  return least;
}

}  // namespace memreplay
