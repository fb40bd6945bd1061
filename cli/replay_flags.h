// Flags that several commands have, so that they mean and say the same everywhere.
#ifndef MEMREPLAY_CLI_REPLAY_FLAGS_H_
#define MEMREPLAY_CLI_REPLAY_FLAGS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/flags.h"
#include "report/ask/held.h"
#include "sim/recording/replay_settings.h"

namespace memreplay {

// --capacity: a size, the name of a GPU, or "unlimited". A number below 1 MiB without a unit is
// refused with a hint: nobody means bytes. `request` must outlive `flags`. `name` of the flag;
// `given`: receives its text, may be null.
void AddCapacityFlag(FlagSet* flags, SettingsRequest* request, std::string_view help,
                     std::string_view name = "capacity", std::string* given = nullptr);

// --conf: a settings string, with or without the variable's name before it as in
// "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True". The second may be given several times.
void AddConfFlag(FlagSet* flags, std::optional<std::string>* conf, std::string_view help);
void AddConfsFlag(FlagSet* flags, std::vector<std::string>* confs, std::string_view help);

// --torch.
void AddTorchFlag(std::optional<std::string>* torch, FlagSet* flags);

// --fraction and --addresses.
void AddDeviceFlags(FlagSet* flags, SettingsRequest* request);

// --torch, --capacity, --fraction and --addresses.
void AddSettingsFlags(SettingsRequest* settings, FlagSet* flags);

// --start: "recorded" or "fresh".
void AddStartFlag(std::string* start, FlagSet* flags);

// --device: of the file.
void AddDeviceFlag(std::optional<int64_t>* device, FlagSet* flags);

// --top and --stack, of commands that list stacks.
void AddHeldFlags(HeldOptions* held, FlagSet* flags);

// --json, of commands that print one report a file.
void AddJsonFlag(bool* json, FlagSet* flags);

}  // namespace memreplay

#endif  // MEMREPLAY_CLI_REPLAY_FLAGS_H_
