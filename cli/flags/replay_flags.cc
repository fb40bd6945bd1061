#include "cli/flags/replay_flags.h"

#include "absl/status/status.h"
#include "report/ask/settings_text.h"
#include "report/words/text.h"
#include "sim/settings/torch_profile.h"
#include "trace/bytes/json_scanner.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

constexpr int64_t kMaxStacks = 100000;

}  // namespace

void AddConfFlag(FlagSet* flags, std::optional<std::string>* conf, std::string_view help) {
  flags->AddParsed("conf", "CONF", help, [conf](std::string_view text) {
    *conf = ConfOf(text);
    return absl::OkStatus();
  });
}

void AddConfsFlag(FlagSet* flags, std::vector<std::string>* confs, std::string_view help) {
  flags->AddParsed(
      "conf", "CONF", help,
      [confs](std::string_view text) {
        confs->push_back(ConfOf(text));
        return absl::OkStatus();
      },
      /*repeats=*/true);
}

void AddCapacityFlag(FlagSet* flags, SettingsRequest* request, std::string_view help,
                     std::string_view name, std::string* given) {
  flags->AddParsed(name, "SIZE|NAME", help, [request, given](std::string_view text) {
    if (given != nullptr) *given = std::string(text);
    return SetCapacity(text, request);
  });
}

void AddTorchFlag(std::optional<std::string>* torch, FlagSet* flags) {
  flags->AddParsed("torch", "VERSION", "PyTorch release whose allocator is modelled, such as 2.6",
                   [torch](std::string_view text) {
                     *torch = std::string(text);
                     return FindTorchProfile(text).status();
                   });
}

void AddDeviceFlags(FlagSet* flags, SettingsRequest* request) {
  flags->AddFraction("fraction", &request->fraction,
                     "share of the device that PyTorch may use, from 0 to 1");
  flags->AddParsed("addresses", "down|up",
                   "order in which the device hands out addresses: down as on Linux, up as on\n"
                   "Windows and WSL; the default is as in the recording, or down",
                   [request](std::string_view text) {
                     if (text != "down" && text != "up") {
                       return InvalidArgument("expected down or up, found '", text, "'");
                     }
                     request->order =
                         text == "up" ? AddressOrder::kUpwards : AddressOrder::kChunksDownwards;
                     return absl::OkStatus();
                   });
}

void AddSettingsFlags(SettingsRequest* settings, FlagSet* flags) {
  AddTorchFlag(&settings->torch, flags);
  AddCapacityFlag(flags, settings,
                  "memory of the device, such as 80GiB, the name of a GPU, such as rtx-4090,\n"
                  "or unlimited; the default for a recording is what its GPU is known to have had");
  AddDeviceFlags(flags, settings);
}

void AddStartFlag(std::string* start, FlagSet* flags) {
  flags->AddChoice("start", {"recorded", "fresh"}, start,
                   "the state before the first request: the recording's segments and blocks, or\n"
                   "only what was live then, allocated again");
}

void AddDeviceFlag(std::optional<int64_t>* device, FlagSet* flags) {
  flags->AddNumber("device", "N", device, "only this device of the file");
}

void AddHeldFlags(HeldOptions* held, FlagSet* flags) {
  flags->AddParsed("top", "N", StrCat("how many stacks to list (default: ", held->top, ")"),
                   [held](std::string_view text) -> absl::Status {
                     const std::optional<int64_t> top = ParseInt64(text);
                     if (!top.has_value() || *top < 1 || *top > kMaxStacks) {
                       return InvalidArgument("expected 1 to ", kMaxStacks, ", found ", text);
                     }
                     held->top = static_cast<size_t>(*top);
                     return absl::OkStatus();
                   });
  flags->AddParsed("stack", "TEXT",
                   "list only stacks with TEXT in a frame, such as a file or a function",
                   [held](std::string_view text) {
                     held->filter = CleanText(text);
                     return absl::OkStatus();
                   });
}

void AddJsonFlag(bool* json, FlagSet* flags) {
  flags->AddSwitch("json", json,
                   "print the report as JSON; for several files one line each, in order");
}

}  // namespace memreplay
