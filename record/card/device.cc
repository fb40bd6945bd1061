#include "record/card/device.h"

namespace memreplay::card {
namespace {

std::mutex making;
std::atomic<Device*> the_device{nullptr};
LibraryVersions the_versions;
thread_local int this_card = 0;

}  // namespace

Device::Device(const Settings& from_environment)
    : settings(from_environment),
      backing(settings.cards == 0 ? 1 : settings.cards, settings.simulated),
      streams(settings.completion) {
  const int count = settings.card == nullptr ? 0 : settings.cards;
  for (int i = 0; i < count; ++i) {
    cards.emplace_back(settings.capacity, backing.regions(i), settings.addresses);
    cards.back().external(static_cast<std::int64_t>(settings.reserve));
  }
  allocated.resize(cards.size());
}

Device& device() {
  if (Device* made = the_device.load(std::memory_order_acquire)) return *made;
  const std::lock_guard<std::mutex> lock(making);
  if (Device* made = the_device.load(std::memory_order_acquire)) return *made;
  Device* made = new Device(SettingsFromEnvironment());
  the_device.store(made, std::memory_order_release);
  return *made;
}

void ReplaceDevice(Device* made) { the_device.store(made, std::memory_order_release); }

LibraryVersions& versions() { return the_versions; }
int& current_card() { return this_card; }

}  // namespace memreplay::card
