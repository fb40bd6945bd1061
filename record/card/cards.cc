#include "record/card/cards.h"

#include <cctype>

#include "record/card/json.h"

namespace memreplay::card {
namespace {

constexpr char kCapabilitySource[] =
    "CUDA C++ Programming Guide, Technical Specifications per Compute Capability";
constexpr char kContextSource[] =
    "0.49 GiB in two out-of-memory reports of PyTorch 2 (RTX 4090, A100): process less reserved";

// What one block may take is what a multiprocessor has less the 1 KiB that the system keeps.
constexpr Capability kCapabilities[] = {
    {70, 2048, 32, 98304, 98304},    {75, 1024, 16, 65536, 65536},
    {80, 2048, 32, 167936, 166912},  {86, 1536, 16, 102400, 101376},
    {89, 1536, 24, 102400, 101376},  {90, 2048, 32, 233472, 232448},
    {100, 2048, 32, 233472, 232448}, {120, 1536, 32, 102400, 101376},
};

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

// Where figures are from. "deviceQuery" is the output of NVIDIA's sample of this name that people
// publish: memory as cudaMemGetInfo reports it, multiprocessors, clocks, bus and L2. The same card
// differs by some tens of MB from driver to driver, so the source says which.
constexpr char kPyTorchProperties[] =
    "memory (to the MiB), multiprocessors and L2: torch.cuda.get_device_properties as published; "
    "clocks and bus: NVIDIA's data sheet";

// name, title, capability, memory, multiprocessors, L2, clocks in kHz, bus, source
constexpr Card kCards[] = {
    {"b200", "NVIDIA B200", 100, 182642 * kMiB, 148, 132120576, 1965000, 3996000, 8192,
     kPyTorchProperties},
    {"h200", "NVIDIA H200", 90, 143156 * kMiB, 132, 62914560, 1980000, 3201000, 6144,
     kPyTorchProperties},
    {"h100-sxm", "NVIDIA H100 80GB HBM3", 90, 85028896768, 132, 52428800, 1980000, 2619000, 5120,
     "deviceQuery, driver for CUDA 12.8"},
    {"a100-sxm-80gb", "NVIDIA A100-SXM4-80GB", 80, 85100068864, 108, 41943040, 1410000, 1593000,
     5120, "deviceQuery, driver for CUDA 12.5"},
    {"l40s", "NVIDIA L40S", 89, 47576711168, 142, 100663296, 2520000, 9001000, 384,
     "deviceQuery, driver for CUDA 12.4"},
    {"l4", "NVIDIA L4", 89, 23612293120, 58, 50331648, 2040000, 6251000, 192,
     "deviceQuery, driver for CUDA 12.0; L2: NVIDIA's data sheet"},
    {"a10g", "NVIDIA A10G", 86, 22587 * kMiB, 80, 6291456, 1710000, 6251000, 384,
     kPyTorchProperties},
    {"t4", "Tesla T4", 75, 15642329088, 40, 4194304, 1590000, 5001000, 256,
     "deviceQuery, driver for CUDA 12.5"},
    {"v100-sxm-32gb", "Tesla V100-SXM2-32GB", 70, 34072559616, 80, 6291456, 1530000, 877000, 4096,
     "deviceQuery, driver for CUDA 12.9"},
    {"v100-sxm-16gb", "Tesla V100-SXM2-16GB", 70, 16928342016, 80, 6291456, 1530000, 877000, 4096,
     "deviceQuery, driver for CUDA 12.4"},
    {"rtx-a6000", "NVIDIA RTX A6000", 86, 51160023040, 84, 6291456, 1800000, 8001000, 384,
     "deviceQuery, driver for CUDA 12.7"},
    {"rtx-5090", "NVIDIA GeForce RTX 5090", 120, 33660534784, 170, 100663296, 2407000, 14001000,
     512, "deviceQuery, driver for CUDA 13.0"},
    {"rtx-4090", "NVIDIA GeForce RTX 4090", 89, 25386352640, 128, 75497472, 2520000, 10501000, 384,
     "deviceQuery, driver for CUDA 12.4"},
    {"rtx-4080-super", "NVIDIA GeForce RTX 4080 SUPER", 89, 16852844544, 80, 67108864, 2550000,
     11501000, 256, "deviceQuery, driver for CUDA 12.4"},
    {"rtx-3090", "NVIDIA GeForce RTX 3090", 86, 25443893248, 82, 6291456, 1695000, 9751000, 384,
     "deviceQuery, driver for CUDA 11.8"},
    {"rtx-3060", "NVIDIA GeForce RTX 3060", 86, 12626493440, 28, 2359296, 1867000, 7501000, 192,
     "deviceQuery, driver for CUDA 12.1"},
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
    *error = "several GPUs match: " + matching;
    return nullptr;
  }
  *error = "unknown GPU; known are ";
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
    json.key("memory").value(card.memory).key("context").value(kContextBytes);
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
    json.key("source").value(card.source);
    json.key("capability_source")
        .value(kCapabilitySource)
        .key("context_source")
        .value(kContextSource);
    json.close('}');
  }
  json.close(']');
  return json.text();
}

}  // namespace memreplay::card
