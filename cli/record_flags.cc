#include "cli/record_flags.h"

#include <string>
#include <vector>

#include "record/card/cards.h"
#include "report/words/sizes.h"
#include "trace/value/strings.h"

namespace memreplay {

namespace {

absl::Status ParseAddresses(std::string_view text, std::string* addresses) {
  *addresses = text;
  if (text == "down" || text == "up") return absl::OkStatus();
  const absl::StatusOr<Bytes> size = ParseSize(text.substr(0, 3) == "up:" ? text.substr(3) : "");
  if (!size.ok()) {
    return absl::InvalidArgumentError(
        StrCat("expected down, up or up:SIZE, such as up:188MiB, found \"", text, "\""));
  }
  *addresses = StrCat("up:", size->value());
  return absl::OkStatus();
}

}  // namespace

void AddRecordFlags(RecordOptions* run, FlagSet* flags) {
  flags->AddSize("capacity", &run->capacity, "its memory, instead of the table's");
  flags->AddSize("reserve", &run->reserve,
                 "what the CUDA context and other processes take of it, instead of\n"
                 "the table's assumption");
  flags->AddSize("nccl", &run->nccl,
                 "what a communicator of NCCL takes of it; 688 MiB if not given");
  flags->AddSize("cudnn-workspace", &run->cudnn_workspace,
                 "what each plan of cuDNN asks for beside its tensors, which cuDNN\n"
                 "alone knows; 0 if not given");
  flags->AddNumber("cards", "N", &run->cards,
                   "how many of them; 1 if not given. With --ranks: on each machine");
  flags->AddNumber("ranks", "N", &run->ranks,
                   "the program's one process stands for one rank of a job of N");
  flags->AddNumber("rank", "K", &run->rank, "which one; 0 if not given");
  flags->AddChoice("completion", {"lagging", "at-once"}, &run->completion,
                   "when work is done: when the host waits for it, or at once");
  flags->AddParsed("addresses", "down|up|up:SIZE",
                   "order in which it hands addresses out: down as on Linux, up as on Windows\n"
                   "and WSL, with SIZE at the bottom that is free once the first kernel is\n"
                   "launched; 108MiB if not given",
                   [run](std::string_view text) { return ParseAddresses(text, &run->addresses); });
  flags->AddFraction("dynamic-fraction", &run->dynamic_fraction,
                     "which share of a tensor's elements a size is taken to be that depends\n"
                     "on unknown values; 1 if not given");
  flags->AddNumber("unknown-limit", "N", &run->unknown_limit,
                   "how often one line may ask for an unknown value; 10000 if not given");
  flags->AddSwitch("no-values", &run->no_values, "leave small tensors without values too");
  flags->AddSwitch("fast-init", &run->fast_init,
                   "skip the initialisation of large weights on the CPU");
  flags->AddText("python", "PATH", &run->python,
                 "the interpreter of scripts; if not given, the one beside this\n"
                 "program if it has PyTorch, else python3");
}

absl::Status CheckRecordCall(const RecordOptions& run) {
  if (run.program.empty() || run.program == std::vector<std::string>{"-m"}) {
    return absl::InvalidArgumentError("no PROGRAM given; memreplay record --help tells more");
  }
  if (std::string why; !run.card.empty() && card::FindCard(run.card.c_str(), &why) == nullptr) {
    return absl::InvalidArgumentError(StrCat("--card ", run.card, ": ", why));
  }
  if (run.card.empty() &&
      (run.capacity.has_value() || run.reserve.has_value() || run.nccl.has_value() ||
       run.cudnn_workspace.has_value() || run.cards.has_value() || run.ranks.has_value())) {
    return absl::InvalidArgumentError(
        "--capacity, --reserve, --nccl, --cudnn-workspace, --cards and --ranks go with --card: a "
        "real GPU is as it is");
  }
  if (run.rank.has_value() && !run.ranks.has_value()) {
    return absl::InvalidArgumentError("--rank goes with --ranks");
  }
  if (run.ranks.has_value() &&
      (*run.ranks < 1 || run.rank.value_or(0) < 0 || run.rank.value_or(0) >= *run.ranks)) {
    return absl::InvalidArgumentError(
        StrCat("--rank: expected 0 to ", *run.ranks - 1, ", and at least one of --ranks"));
  }
  if (run.cards.has_value() && (*run.cards < 1 || *run.cards > 64)) {
    return absl::InvalidArgumentError(StrCat("--cards: expected 1 to 64, found ", *run.cards));
  }
  if (run.dynamic_fraction.has_value() &&
      !(*run.dynamic_fraction >= 0 && *run.dynamic_fraction <= 1)) {
    return absl::InvalidArgumentError(
        StrCat("--dynamic-fraction: expected 0 to 1, found ", *run.dynamic_fraction));
  }
  return absl::OkStatus();
}

}  // namespace memreplay
