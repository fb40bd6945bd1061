// What the environment says about the card (options.h has the variables).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "hardware/cards.h"
#include "hardware/driver_addresses.h"
#include "record/card/model/options.h"
#include "record/card/model/streams.h"

namespace memreplay::card {

// The settings of all cards of a process.
struct Settings {
  std::optional<Card> card;  // nullopt: the settings are wrong
  uint64_t capacity = 0;
  uint64_t reserve = 0;
  std::string reserve_reason;  // why it is that much
  int cards = 1;
  Streams::Completion completion = Streams::Completion::kLagging;
  AddressOrder addresses = AddressOrder::kChunksDownwards;
  uint64_t below_first_kernel = DriverAddresses::kBelowFirstKernel;  // bytes, with kUpwards
  uint64_t copy_limit = 65536;
  uint64_t cudnn_workspace = 0;
  uint64_t nccl = kNcclBytes;
  uint64_t host_memory = kMaxHostBytes;  // that can be pinned
  std::string error;                     // what is wrong, for a person

  // For tests that compare a card with memreplay's simulated device: there are no bytes behind its
  // addresses, which begin at kSimulatedRegions, and stream handles are 1, 2, 3.
  bool simulated = false;
};

Settings SettingsFromEnvironment();

}  // namespace memreplay::card
