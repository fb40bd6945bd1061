// Flags that several commands have, so that they mean and say the same everywhere.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/flags/flags.h"
#include "report/device/categories.h"
#include "sim/recording/replay_settings.h"

namespace memreplay {

// Registers --capacity: a size, the name of a GPU, or "unlimited". A number below 1 MiB without a
// unit is an error with a hint, since bytes cannot be meant. `request` must outlive `flags`. `name`
// is that of the flag; `given`, which may be null, receives its text.
void AddCapacityFlag(FlagSet* flags, SettingsRequest* request, std::string_view help,
                     std::string_view name = "capacity", std::string* given = nullptr);

// Register --conf: a settings string, with or without the variable's name in front of it, as in
// "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True". The second may be given several times.
void AddConfFlag(FlagSet* flags, std::optional<std::string>* conf, std::string_view help);
void AddConfsFlag(FlagSet* flags, std::vector<std::string>* confs, std::string_view help);

// Registers --torch.
void AddTorchFlag(std::optional<std::string>* torch, FlagSet* flags);

// Registers --fraction and --addresses.
void AddDeviceFlags(FlagSet* flags, SettingsRequest* request);

// Registers --torch, --capacity, --fraction and --addresses.
void AddSettingsFlags(SettingsRequest* settings, FlagSet* flags);

// Registers --start: "recorded" or "fresh".
void AddStartFlag(std::string* start, FlagSet* flags);

// Registers --device, a device of the file.
void AddDeviceFlag(std::optional<int64_t>* device, FlagSet* flags);

// Registers --top and --stack, for commands that list stacks.
void AddHeldFlags(HeldOptions* held, FlagSet* flags);

// Registers --json, for commands that print one report per file.
void AddJsonFlag(bool* json, FlagSet* flags);

}  // namespace memreplay
