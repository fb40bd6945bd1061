#include "cli/replay_flags.h"

#include "cli/device_flags.h"

namespace memreplay {

void AddSettingsFlags(SettingsRequest* settings, FlagSet* flags) {
  flags->AddOptionalText("torch", "VERSION", &settings->torch,
                         "PyTorch release whose allocator to model");
  AddCapacityFlag(flags, settings,
                  "memory of the device, such as 80GiB, or unlimited; without it, of a\n"
                  "recording, what its card is known to have had");
  AddDeviceFlags(flags, settings);
}

void AddStartFlag(std::string* start, FlagSet* flags) {
  flags->AddChoice("start", {"recorded", "fresh"}, start,
                   "what is there before the first request: the recording's segments and\n"
                   "blocks, or only what was live, allocated anew");
}

void AddDeviceFlag(std::optional<int64_t>* device, FlagSet* flags) {
  flags->AddNumber("device", "N", device, "only this device of the file");
}

void AddJsonFlag(bool* json, FlagSet* flags) {
  flags->AddSwitch("json", json,
                   "print the report as JSON; of several files one line each, in order");
}

}  // namespace memreplay
