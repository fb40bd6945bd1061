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
  flags->AddSize("capacity", &run->capacity, "its memory, instead of the value in the table");
  flags->AddSize("reserve", &run->reserve,
                 "how much of it the CUDA context and other processes take, instead of\n"
                 "the value in the table");
  flags->AddSize("nccl", &run->nccl,
                 "how much of it an NCCL communicator takes (default: 688 MiB)");
  flags->AddSize("cudnn-workspace", &run->cudnn_workspace,
                 "the workspace that each cuDNN plan requests, which only cuDNN knows\n"
                 "(default: 0)");
  flags->AddNumber("cards", "N", &run->cards,
                   "how many GPUs (default: 1); with --ranks, on each machine");
  flags->AddNumber("ranks", "N", &run->ranks,
                   "the single process of the script stands for one rank of a job of N");
  flags->AddNumber("rank", "K", &run->rank, "which rank (default: 0)");
  flags->AddChoice("completion", {"lagging", "at-once"}, &run->completion,
                   "when work completes: when the host waits for it, or at once");
  flags->AddParsed("addresses", "down|up|up:SIZE",
                   "order in which it hands out addresses: down as on Linux, up as on Windows\n"
                   "and WSL, where SIZE (default: 108MiB) at the bottom becomes free when the\n"
                   "first kernel is launched",
                   [run](std::string_view text) { return ParseAddresses(text, &run->addresses); });
  flags->AddFraction("dynamic-fraction", &run->dynamic_fraction,
                     "the share of a tensor's elements that is assumed for a size that depends\n"
                     "on unknown values (default: 1)");
  flags->AddNumber("unknown-limit", "N", &run->unknown_limit,
                   "how often one line may read an unknown value (default: 10000)");
  flags->AddSwitch("no-values", &run->no_values,
                   "do not compute the values of small tensors either");
  flags->AddSwitch("no-notes", &run->no_notes,
                   "leave out of the snapshot which modules ran and which memory is\n"
                   "parameters, gradients or the optimizer's");
  flags->AddSwitch("fast-init", &run->fast_init,
                   "skip the initialisation of large weights on the CPU");
  flags->AddText("python", "PATH", &run->python,
                 "the Python interpreter for scripts; the default is the one next to\n"
                 "memreplay if it has PyTorch, else python3");
}

absl::Status CheckRecordCall(const RecordOptions& run) {
  if (run.program.empty() || run.program == std::vector<std::string>{"-m"}) {
    return absl::InvalidArgumentError("no PROGRAM given; see memreplay record --help");
  }
  if (std::string why; !run.card.empty() && card::FindCard(run.card.c_str(), &why) == nullptr) {
    return absl::InvalidArgumentError(StrCat("--card ", run.card, ": ", why));
  }
  if (run.card.empty() &&
      (run.capacity.has_value() || run.reserve.has_value() || run.nccl.has_value() ||
       run.cudnn_workspace.has_value() || run.cards.has_value() || run.ranks.has_value())) {
    return absl::InvalidArgumentError(
        "--capacity, --reserve, --nccl, --cudnn-workspace, --cards and --ranks require --card; "
        "they cannot change a real GPU");
  }
  if (run.rank.has_value() && !run.ranks.has_value()) {
    return absl::InvalidArgumentError("--rank requires --ranks");
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
