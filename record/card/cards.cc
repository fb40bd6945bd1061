#include "record/card/cards.h"

#include <cctype>

#include "record/card/json.h"

namespace memreplay::card {
namespace {

// CUDA C++ Programming Guide, "Technical Specifications per Compute Capability". What one block may
// take is what a multiprocessor has less the 1 KiB that the system keeps of each block.
constexpr Capability kCapabilities[] = {
    {70, 2048, 32, 98304, 98304},    {75, 1024, 16, 65536, 65536},
    {80, 2048, 32, 167936, 166912},  {86, 1536, 16, 102400, 101376},
    {89, 1536, 24, 102400, 101376},  {90, 2048, 32, 233472, 232448},
    {100, 2048, 32, 233472, 232448}, {120, 1536, 32, 102400, 101376},
};

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

constexpr Card kCards[] = {
    {"rtx-4090", "NVIDIA GeForce RTX 4090", 89, 25386352640, 400 * kMiB, 128, 75497472, 2520000,
     10501000, 384, "", ""},
    {"h100-sxm", "NVIDIA H100 80GB HBM3", 90, 85029158912, 500 * kMiB, 132, 52428800, 1980000,
     2619000, 5120, "", ""},
    {"a100-sxm-80gb", "NVIDIA A100-SXM4-80GB", 80, 85094236160, 450 * kMiB, 108, 41943040, 1410000,
     1593000, 5120, "", ""},
    {"t4", "Tesla T4", 75, 15655829504, 300 * kMiB, 40, 4194304, 1590000, 5001000, 256, "", ""},
};

// Lower case, without what does not matter.
std::string plain(const char* name) {
  std::string out;
  for (; *name != 0; ++name) {
    if (std::isalnum(static_cast<unsigned char>(*name)) != 0) {
      out += static_cast<char>(std::tolower(static_cast<unsigned char>(*name)));
    }
  }
  return out;
}

}  // namespace

const Card* FindCard(const char* name, std::string* error) {
  const std::string wanted = plain(name);
  const Card* found = nullptr;
  std::string matching;
  int matches = 0;
  for (const Card& card : kCards) {
    if (plain(card.name) == wanted || plain(card.title) == wanted) return &card;
    if (wanted.empty() || (plain(card.name).find(wanted) == std::string::npos &&
                           plain(card.title).find(wanted) == std::string::npos)) {
      continue;
    }
    found = &card;
    matching += (matches++ == 0 ? "" : ", ") + std::string(card.name);
  }
  if (matches == 1) return found;
  if (matches > 1) {
    *error = "several cards match: " + matching;
    return nullptr;
  }
  *error = "no such card; there are ";
  for (const Card& card : kCards) *error += (&card == kCards ? "" : ", ") + std::string(card.name);
  return nullptr;
}

const Capability& CapabilityOf(const Card& card) {
  for (const Capability& capability : kCapabilities) {
    if (capability.number == card.capability) return capability;
  }
  return kCapabilities[0];  // cards_test checks that each card's capability is there
}

std::string ListCards() {
  Json json;
  json.open('[');
  for (const Card& card : kCards) {
    const Capability& capability = CapabilityOf(card);
    json.open('{');
    json.key("name").value(card.name).key("title").value(card.title);
    json.key("capability")
        .value(std::to_string(card.capability / 10) + "." + std::to_string(card.capability % 10));
    json.key("memory").value(card.memory).key("context").value(card.context);
    const auto number = [&json](const char* key, int value) {
      json.key(key).value(static_cast<std::uint64_t>(value));
    };
    number("multiprocessors", card.multiprocessors);
    number("l2_bytes", card.l2_bytes);
    number("clock_khz", card.clock_khz);
    number("memory_clock_khz", card.memory_clock_khz);
    number("memory_bus_bits", card.memory_bus_bits);
    number("threads_per_multiprocessor", capability.threads_per_multiprocessor);
    number("blocks_per_multiprocessor", capability.blocks_per_multiprocessor);
    number("shared_per_multiprocessor", capability.shared_per_multiprocessor);
    number("shared_per_block_optin", capability.shared_per_block_optin);
    json.key("source").value(card.source).key("memory_source").value(card.memory_source);
    json.close('}');
  }
  json.close(']');
  return json.text();
}

}  // namespace memreplay::card
