// What the environment says about the card (README.md lists the variables).
#pragma once

#include <cstdint>
#include <string>

#include "hardware/driver_addresses.h"
#include "record/card/cards.h"
#include "record/card/streams.h"

namespace memreplay::card {

struct Settings {
  const Card* card = nullptr;  // null: the settings are wrong
  std::uint64_t capacity = 0;
  std::uint64_t reserve = 0;
  int cards = 1;
  Streams::Completion completion = Streams::Completion::kLagging;
  AddressOrder addresses = AddressOrder::kChunksDownwards;
  std::uint64_t below_first_kernel = DriverAddresses::kBelowFirstKernel;  // bytes, with kUpwards
  std::uint64_t copy_limit = 65536;
  std::uint64_t cudnn_workspace = 0;
  // Bytes of the card that an NCCL communicator of several ranks takes, past PyTorch's allocator.
  // No release documents it; the figure is what 4 A100 with NVLink took for more than two ranks
  // (https://github.com/NVIDIA/nccl/issues/964).
  std::uint64_t nccl = std::uint64_t{688} << 20;
  std::string error;  // what is wrong, for a person

  // A card as memreplay's simulated device is: no bytes behind its addresses, which begin at
  // kSimulatedRegions, and stream handles 1, 2, 3. For tests that compare the two.
  bool simulated = false;
};

inline constexpr int kMostCards = 64;

Settings SettingsFromEnvironment();

}  // namespace memreplay::card
