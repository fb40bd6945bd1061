#include "cli/replay_flags.h"

namespace memreplay {

void AddSettingsFlags(SettingsRequest* settings, FlagSet* flags) {
  flags->AddOptionalText("torch", "VERSION", &settings->torch,
                         "PyTorch release whose allocator to model");
  flags->AddSize("capacity", &settings->capacity, "memory of the device, such as 80GiB");
  flags->AddFraction("fraction", &settings->fraction, "share of it that PyTorch may use, 0 to 1");
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
