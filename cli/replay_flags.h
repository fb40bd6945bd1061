// Flags that several commands have, so that they mean and say the same everywhere.
#ifndef MEMREPLAY_CLI_REPLAY_FLAGS_H_
#define MEMREPLAY_CLI_REPLAY_FLAGS_H_

#include <cstdint>
#include <optional>
#include <string>

#include "cli/flags.h"
#include "sim/recording/replay_settings.h"

namespace memreplay {

// --torch, --capacity, --fraction and --addresses.
void AddSettingsFlags(SettingsRequest* settings, FlagSet* flags);

// --start: "recorded" or "fresh".
void AddStartFlag(std::string* start, FlagSet* flags);

// --device: of the file.
void AddDeviceFlag(std::optional<int64_t>* device, FlagSet* flags);

// --json, of commands that print one report a file.
void AddJsonFlag(bool* json, FlagSet* flags);

}  // namespace memreplay

#endif  // MEMREPLAY_CLI_REPLAY_FLAGS_H_
