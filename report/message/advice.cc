#include "report/message/advice.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/types/span.h"
#include "hardware/cards.h"
#include "report/message/amount.h"
#include "report/message/rows.h"
#include "report/words/text.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

using Explanation = proto::Explanation;

constexpr size_t kMaxShown = 120;  // of a path or a line of code
constexpr double kHighUtilization = 0.9;
constexpr double kMinUtilization = 0.1;

// The most common card among GPUs of one size; the table of hardware/ has the others.
constexpr std::string_view kUsualCards[] = {
    "b200", "h200", "h100-sxm",      "a100-sxm-80gb", "l40s",     "l4",
    "a10g", "t4",   "v100-sxm-16gb", "rtx-a6000",     "rtx-5090", "rtx-4090",
};

std::string Shown(std::string_view text) { return CleanText(text, kMaxShown); }

// Returns "train.py:12 (loss = f(x))".
std::string Place(const SourceFrame& frame) {
  std::string place = Shown(frame.file);
  if (frame.line > 0) StrAppend(&place, ":", frame.line);
  if (!frame.code.empty()) StrAppend(&place, " (", Shown(frame.code), ")");
  return place;
}

class Adviser {
 public:
  Adviser(const Facts& facts, const Sums& sums, const Judgement& judgement)
      : facts_(facts), sums_(sums), judgement_(judgement) {}

  std::vector<Advice> Advise();

 private:
  // `piece` is the $0 of the sentence.
  void Add(const Tip& tip, std::string_view piece = "") {
    Add(tip.kind, tip.brief, absl::StrReplaceAll(ToAbsl(tip.sentence), {{"$0", ToAbsl(piece)}}));
  }
  // `pieces` are the sentence.
  template <typename... Pieces>
  void Add(std::string_view kind, std::string_view brief, const Pieces&... pieces) {
    std::string sentence = StrCat(pieces...);
    const bool is_new =
        absl::c_none_of(advice_, [&](const Advice& one) { return one.sentence == sentence; });
    if (is_new && advice_.size() < kMaxAdvice) {
      advice_.push_back({std::string(kind), std::string(brief), std::move(sentence)});
    }
  }
  // Returns the place of the user's own code behind a text, or `otherwise` if it is unknown.
  std::string Where(std::string_view before, std::string_view otherwise = "") const {
    return facts_.frame.has_value() ? StrCat(before, Place(*facts_.frame)) : std::string(otherwise);
  }
  bool IsCuda() const {
    return facts_.form->kind != FormKind::kMps && !facts_[Circumstance::kXpu] &&
           !facts_[Circumstance::kNpu] && !facts_[Circumstance::kHip];
  }
  bool IsBatchOne() const { return facts_[Number::kBatch].value_or(2) == 1; }
  bool IsServer() const { return facts_[Circumstance::kVllm] || facts_[Circumstance::kSglang]; }
  // PyTorch from 2.1 on lists the GPU's processes, but not on Windows and WSL.
  bool IsMaybeWindows() const {
    return facts_.form->kind == FormKind::kDevice && IsCuda() && !facts_.is_before_2_1 &&
           facts_[Quantity::kUnallocated].has_value() && !facts_[Quantity::kLimit].has_value() &&
           facts_.processes.empty() && !facts_[Quantity::kOwnProcess].has_value();
  }
  std::string_view ConfName() const {
    return facts_[Circumstance::kNpu]   ? "PYTORCH_NPU_ALLOC_CONF"
           : facts_[Circumstance::kHip] ? "PYTORCH_HIP_ALLOC_CONF"
                                        : "PYTORCH_CUDA_ALLOC_CONF";
  }

  void Setting();
  void Reduce();
  void ReduceByFrame();
  void OtherProcesses();
  void Record();
  void Snapshot() {
    if (facts_.form->kind != FormKind::kMps && IsCuda() && !IsServer()) {
      Add(kSnapshotTip);
    }
  }
  bool OtherProgram();
  void Library();
  void Host();
  void Environment();
  void Serving();
  void Numbers();
  void TooLarge();
  void Limit();
  void LeaveRoom(std::string_view whom);

  const Facts& facts_;
  const Sums& sums_;
  const Judgement& judgement_;
  std::vector<Advice> advice_;
};

void Adviser::Setting() {
  if (facts_.form->kind == FormKind::kAsync || facts_[Circumstance::kAsyncIsOn]) {
    Add(kNativeAllocatorTip);
    return;
  }
  if (facts_[Circumstance::kExpandableIsOn]) {
    Snapshot();
    return;
  }
  if (facts_[Circumstance::kWindows] && !facts_[Circumstance::kWsl]) {
    Add(kMaxSplitSizeTip);
    return;
  }
  if (facts_.is_before_2_1 && !facts_[Circumstance::kNpu]) {
    Add("setting", "update PyTorch and set expandable_segments:True",
        "Update PyTorch to 2.1 or later and set ", ConfName(), "=expandable_segments:True",
        facts_[Quantity::kReserved].has_value()
            ? "; this release only has max_split_size_mb (try 128)."
            : ".");
    return;
  }
  Add("setting", StrCat("set ", ConfName(), "=expandable_segments:True"), "Set ", ConfName(),
      "=expandable_segments:True in the environment before Python starts",
      facts_[Circumstance::kTrainingAndServing]
          ? " (not for the server: vLLM's sleep mode cannot use it)"
          : "",
      IsMaybeWindows() ? " (Linux and WSL; on Windows itself max_split_size_mb:128)" : "",
      judgement_.settings_give.has_value()
          ? StrCat("; it can give at most the ", Size(*judgement_.settings_give),
                   " that lies in pieces.")
          : ".");
}

void Adviser::ReduceByFrame() {
  if (facts_[Circumstance::kComfy]) {
    Add(kComfyUiTip);
    return;
  }
  for (const auto& row : kFrameTips) {
    const bool is_ruled_out = row.unless != FrameHint::kCount && facts_[row.unless];
    if (!facts_[row.hint] || is_ruled_out) continue;
    Add(Tip{row.kind, row.brief, row.sentence}, Where(" at "));
    return;
  }
}

void Adviser::Reduce() {
  const size_t before = advice_.size();
  ReduceByFrame();
  if (advice_.size() > before && advice_.size() > 1) return;
  const bool is_training = facts_[FrameHint::kBackward] || facts_[FrameHint::kOptimizerState] ||
                           facts_[FrameHint::kOptimizerTemporaries];
  std::string ways = IsBatchOne() ? "a shorter sequence or smaller images"
                                  : "a smaller batch or shorter sequences (smaller images)";
  if (is_training && !IsBatchOne()) StrAppend(&ways, " with more accumulation steps");
  if (is_training && !facts_[FrameHint::kRecomputing])
    StrAppend(&ways, ", activation checkpointing");
  StrAppend(&ways,
            is_training ? ", an 8-bit or sharded optimizer" : ", bfloat16 or quantized weights");
  if (facts_[FrameHint::kDataParallel]) {
    StrAppend(&ways,
              ", DistributedDataParallel in place of DataParallel, which gathers all on one GPU");
  }
  Add("reduce",
      IsBatchOne() ? "use less memory: shorter sequences, smaller images, fewer bits a weight"
                   : "use less memory: a smaller batch, shorter sequences, fewer bits a weight",
      "Use less memory: ", ways, ".");
}

void Adviser::OtherProcesses() {
  std::string pids;
  std::string largest;
  int64_t most = 0;
  for (const CardProcess& process : facts_.processes) {
    if (process.pid == sums_.own_pid || !process.has_bytes) continue;
    StrAppend(&pids, pids.empty() ? "" : ",", process.pid);
    if (process.bytes.bytes > most) {
      most = process.bytes.bytes;
      largest = std::to_string(process.pid);
    }
  }
  const std::string gpu =
      facts_.gpu.has_value() && IsCuda() ? StrCat(" (GPU ", *facts_.gpu, " is taken)") : "";
  if (pids.empty()) {
    Add("other_process", "find out who holds it, and end that or take another GPU",
        "See who holds it: ",
        facts_[Circumstance::kNpu]   ? "npu-smi info"
        : facts_[Circumstance::kHip] ? "rocm-smi --showpids"
                                     : "nvidia-smi",
        ", on the host if this is a container; end what is not needed, also notebooks and "
        "killed jobs' children.");
  } else {
    Add("other_process", StrCat("end process ", largest, " or take another GPU"),
        "See what they are: ps -o pid,user,etime,cmd -p ", pids,
        " (on the host if this is a container), and end what is not needed.");
  }
  Add(kOtherGpuTip, gpu);
}

void Adviser::Record() {
  if (facts_.script.empty() || !IsCuda() || IsServer() || facts_.form->kind == FormKind::kMps) {
    return;
  }
  const std::string card = CardFlag(facts_);
  const auto& capacity = facts_[Quantity::kCapacity];
  Add("record", "try changes without a GPU", "Try changes without a GPU: memreplay record --card ",
      card.empty() ? "NAME" : card,
      card.empty() && capacity.has_value()
          ? StrCat(" --capacity ",
                   absl::StrFormat("%.0fMiB", static_cast<double>(capacity->bytes) / (1 << 20)))
          : "",
      " ", Shown(facts_.script), " [arguments] shows the peak and its lines",
      card.empty() ? " (--card list shows the names)." : ".");
}

void Adviser::LeaveRoom(std::string_view whom) {
  Add("leave_room", StrCat("leave room for ", whom), "Leave room for ", whom, ": ",
      IsBatchOne() ? "shorter sequences" : "a smaller batch",
      ", torch.cuda.empty_cache() just before (it hands PyTorch's cache to others), or "
      "torch.cuda.set_per_process_memory_fraction(0.9) from the start.");
}

void Adviser::Library() {
  const std::string_view name = facts_.form->name;
  if (name == "vLLM: cumem_allocator") {
    Add(kWakeUpUtilizationTip);
    Add(kWakeUpCacheTip);
    return;
  }
  if (facts_.form->strength < 4) {
    Add(kNcclDebugTip);
  }
  const std::string who = absl::StrContains(ToAbsl(name), "NCCL") ? "NCCL" : std::string(name);
  LeaveRoom(who);
  if (who == "NCCL") {
    Add(kNcclBuffersTip);
  } else if (absl::StrContains(ToAbsl(facts_.form->anchor), "NOT_INITIALIZED")) {
    Add(kIndexErrorTip);
  }
  Add(kWatchSmiTip);
}

void Adviser::Host() {
  const std::string_view name = facts_.form->name;
  if (name.starts_with("Slurm")) Add(kSlurmMemoryTip);
  if (absl::StrContains(ToAbsl(name), "Ray")) {
    Add(kRayTasksTip);
    Add(kRayHoldersTip);
  } else if (facts_[FrameHint::kLoading] || facts_[Circumstance::kLoadingWeights]) {
    Add(kLoadingHostMemoryTip);
  } else if (facts_.form->kind == FormKind::kKilled) {
    Add("host", "use less main memory",
        "Use less main memory: fewer DataLoader workers, data read in pieces or mapped "
        "(mmap), no offload to the CPU",
        facts_[Circumstance::kDeepSpeed]
            ? " (DeepSpeed's ZeRO-Offload keeps 16 bytes a parameter there)"
            : "",
        ".");
  } else if (const auto& tried = facts_[Quantity::kTried];
             tried.has_value() && tried->bytes > (int64_t{32} << 30)) {
    Add("host", "make that tensor smaller", "Look at the shapes: one tensor of ", Size(*tried),
        " on the CPU is rarely meant", Where("; it is made at "), ".");
  } else {
    Add("host", "use less main memory",
        "Use less main memory: smaller batches on the CPU, fewer DataLoader workers, data "
        "mapped (mmap) instead of read",
        facts_[Circumstance::kWindows] ? "; on Windows also a larger page file" : "", ".");
  }
  if (facts_.form->kind == FormKind::kKilled) {
    Add(kDmesgTip);
  }
  Add(kMoreHostMemoryTip);
}

void Adviser::Environment() {
  if (facts_.form->kind == FormKind::kBlockLimit ||
      (facts_[Circumstance::kXpu] &&
       facts_[Quantity::kTried].value_or(Amount()).bytes >= (int64_t{4} << 30))) {
    Add(kSmallerTensorsTip, Where("; this one is made at "));
    Add(kRelaxedLimitsTip);
    return;
  }
  if (facts_[Circumstance::kWsl]) {
    Add(kWslChargesTip);
    Add(kWslPinnedTip);
  } else if (facts_[Circumstance::kWindows]) {
    Add(kWindowsPageFileTip);
  } else if (IsMaybeWindows()) {
    Add(kMaybeWindowsPageFileTip);
  } else if (facts_[Circumstance::kExpandableIsOn]) {
    Add(kMaxMapCountTip);
  } else {
    Add("environment", "look for a limit outside the program",
        "Look for a limit outside the program: ",
        facts_[Circumstance::kHip]
            ? "rocm-smi --showmeminfo vram, ulimit -v, the container's memory limit"
            : "ulimit -v, the container's or job's memory limit, a vGPU or MPS limit",
        "; on Windows and WSL the page file and main memory (GPU memory is charged to them).");
  }
  Add("numbers", "check which GPU is meant",
      "Check that the GPU is the one you mean: with CUDA_VISIBLE_DEVICES",
      facts_.gpu.has_value() ? StrCat(" number ", *facts_.gpu) : " the number",
      " is not nvidia-smi's number (CUDA_DEVICE_ORDER=PCI_BUS_ID makes them agree).");
}

void Adviser::Serving() {
  const bool is_sglang = facts_.form->name.starts_with("SGLang") ||
                         (facts_[Circumstance::kSglang] && !facts_[Circumstance::kVllm]);
  const std::string_view setting = is_sglang ? "--mem-fraction-static" : "--gpu-memory-utilization";
  const auto& utilization = facts_[Number::kUtilization];
  const auto ratio = [](double value) { return absl::StrFormat("%.2f", value); };
  const bool may_raise = utilization.value_or(0.9) < kHighUtilization + 0.001;
  if (facts_[Quantity::kDesired].has_value() && judgement_.utilization.has_value()) {
    const auto& free = facts_[Quantity::kFree];
    const auto& capacity = facts_[Quantity::kCapacity];
    const double share = static_cast<double>(free->bytes) /
                         static_cast<double>(std::max<int64_t>(1, capacity->bytes));
    if (facts_[Circumstance::kGb10]) Add(kDropCachesBeforeStartTip);
    const std::string start = StrCat("tart with ", setting, " ", ratio(*judgement_.utilization));
    if (share < 0.7) OtherProcesses();
    if (share >= 0.7) {
      Add("lower_utilization", StrCat("s", start), "S", start, " or less.");
      OtherProcesses();
    } else if (*judgement_.utilization >= kMinUtilization) {
      Add("lower_utilization", StrCat("s", start), "Or s", start,
          " or less, if the weights fit into that.");
    }
    return;
  }
  if (judgement_.length.has_value()) {
    Add("shorter_context", StrCat("start with --max-model-len ", *judgement_.length),
        "Start with --max-model-len ", *judgement_.length, " or less, if no request is longer.");
    if (may_raise) {
      Add("raise_utilization", StrCat("raise ", setting), "Or raise ", setting, " to 0.95.");
    }
    Add(kSmallerCacheTip);
    return;
  }
  if (facts_.form->anchor == "No available memory for the cache blocks" ||
      facts_.form->name == "SGLang: no memory for the KV cache") {
    if (may_raise) {
      Add("raise_utilization", StrCat("raise ", setting, " to ", is_sglang ? "0.9" : "0.95"),
          "Raise ", setting, " to ", is_sglang ? "0.9" : "0.95",
          utilization.has_value() ? StrCat(" from ", ratio(*utilization)) : "", ".");
    }
    Add(kSmallerWeightsTip);
    Add("reduce", "shrink what is measured",
        is_sglang
            ? "Take less while it works: --chunked-prefill-size 2048, --max-running-requests 16."
            : "Take less while it measures: --max-num-batched-tokens 2048, --max-num-seqs 16, "
              "--enforce-eager (no CUDA graphs).");
    return;
  }
  if (facts_.form->name == "vLLM: memory changed while profiling") {
    Add(kOneServerAtATimeTip);
    OtherProcesses();
    return;
  }
  if (facts_[FrameHint::kLoading] || facts_[Circumstance::kLoadingWeights]) {
    Add(kLoadingWeightsTip);
    if (facts_[FrameHint::kLoading]) return;
  }
  if (judgement_.utilization.has_value()) {
    Add("lower_utilization", StrCat("start with ", setting, " ", ratio(*judgement_.utilization)),
        "Start with ", setting, " ", ratio(*judgement_.utilization), " (now ", ratio(*utilization),
        "): what the server does not set aside is what its work can take.");
  } else {
    Add("lower_utilization", StrCat("lower ", setting), "Lower ", setting, " by 0.05",
        utilization.has_value() ? StrCat(" from ", ratio(*utilization)) : "",
        ": what the server does not set aside is what its work can take.");
  }
  Add("reduce", "let it do less at once",
      is_sglang ? "Let it do less at once: --cuda-graph-max-bs 8, --max-running-requests 16, "
                  "--chunked-prefill-size 2048."
                : "Let it do less at once: --max-num-seqs 32, --max-num-batched-tokens 2048; "
                  "--enforce-eager spares the CUDA graphs.");
  if (sums_.others.bytes > 0) OtherProcesses();
}

void Adviser::Numbers() {
  const bool is_nvml = absl::StrContains(ToAbsl(facts_.form->name), "NVML");
  if (facts_.has_smi && facts_.form->kind == FormKind::kTable) {
    Add(kWholeErrorTip);
  } else if (facts_[Circumstance::kComfy]) {
    ReduceByFrame();
    if (facts_.form->name.starts_with("PyTorch under cudaMallocAsync")) Add(kNativeAllocatorTip);
    return;
  } else {
    // The table may be in the text.
    const std::string smi =
        facts_.has_smi ? "" : StrCat("nvidia-smi", is_nvml ? " on the host" : "", ", and ");
    Add("numbers",
        StrCat("get the figures: ", facts_.has_smi ? "" : "nvidia-smi, and ",
               "torch.cuda.memory_summary() where it fails"),
        "Get the figures: ", smi, "print(torch.cuda.memory_summary()) in an except around the line",
        Where(" "), "; then memreplay explain on all of it.");
  }
  if (facts_[Circumstance::kMig] || is_nvml) {
    Add(kMigSliceTip);
  }
  Snapshot();
  if (facts_.frame.has_value() || is_nvml || facts_.form->kind == FormKind::kSilentDevice) Reduce();
}

void Adviser::TooLarge() {
  const std::string at = Where(" at ", " it is made");
  if (facts_[FrameHint::kAttention] || facts_[FrameHint::kLoss] ||
      facts_[FrameHint::kUpcastLogits] || facts_[FrameHint::kCacheCat]) {
    ReduceByFrame();
    advice_.back().kind = "smaller_request";
  }
  Add(kShapesTip, at);
  Add(kInPiecesTip);
  Record();
}

void Adviser::Limit() {
  if (facts_.form->kind == FormKind::kMps) {
    Reduce();
    Add(kMpsWatermarkTip);
    Add(kMpsCacheTip);
    return;
  }
  Add(kMemoryFractionTip);
  Reduce();
  Snapshot();
}

bool Adviser::OtherProgram() {
  for (const auto& row : kPrograms) {
    if (!facts_.form->name.starts_with(row.name)) continue;
    Add(row.kind, row.brief, row.sentence);
    if (row.smi > 0) Add(kWhoHoldsTip);
    return true;
  }
  if (facts_.form->kind != FormKind::kOther) return false;
  Add(kOtherFrameworkTip);
  Add(kUseLessTip);
  return true;
}

std::vector<Advice> Adviser::Advise() {
  if (!facts_.has_bad_size && OtherProgram()) return advice_;
  switch (judgement_.verdict) {
    case Explanation::fragmentation:
      Setting();
      if (advice_.empty()) Reduce();
      if (!facts_[Circumstance::kExpandableIsOn]) Snapshot();
      Record();
      Reduce();
      break;
    case Explanation::shortage:
    case Explanation::full:
      Reduce();
      if (facts_.form->kind == FormKind::kAsync) Setting();
      if (sums_.others.bytes > (int64_t{1} << 30)) OtherProcesses();
      Record();
      Snapshot();
      break;
    case Explanation::too_large: TooLarge(); break;
    case Explanation::other_process:
      OtherProcesses();
      Reduce();
      break;
    case Explanation::limit: Limit(); break;
    case Explanation::outside:
      Add(kOutsideLibrariesTip);
      Reduce();
      Record();
      break;
    case Explanation::refused_with_free: Environment(); break;
    case Explanation::library: Library(); break;
    case Explanation::host: Host(); break;
    case Explanation::pinned:
      Add(kPinnedTip, Where(", or where it is requested: "));
      Add(kPinLessTip);
      Add(facts_[Circumstance::kWsl] || facts_[Circumstance::kWindows] ? kWslPinnedMemoryTip
                                                                       : kPinnedLimitsTip);
      break;
    case Explanation::shared_memory:
      Add(kMoreShmTip);
      Add(kLessShmTip);
      break;
    case Explanation::unified:
      Add(facts_[Circumstance::kGb10] ? kDropCachesTip : kGttSizeTip);
      Reduce();
      break;
    case Explanation::serving: Serving(); break;
    case Explanation::not_memory:
      if (facts_.form->kind == FormKind::kBadSize || facts_.has_bad_size) {
        Add(kWrongSizeTip, Where(" at "));
        Add(kLaunchBlockingTip);
      } else {
        Add(kSmallerBlocksTip);
        Add(kOtherKernelTip);
      }
      break;
    case Explanation::no_numbers: Numbers(); break;
    case Explanation::leak:
      break;  // is what the live process says, not a text
    // Protobuf's own, so that a verdict without a case does not compile.
    case proto::Explanation_Verdict_Explanation_Verdict_INT_MIN_SENTINEL_DO_NOT_USE_:
    case proto::Explanation_Verdict_Explanation_Verdict_INT_MAX_SENTINEL_DO_NOT_USE_: break;
  }
  return advice_;
}

}  // namespace

std::vector<Advice> Advise(const Facts& facts, const Sums& sums, const Judgement& judgement) {
  return Adviser(facts, sums, judgement).Advise();
}

std::vector<std::string> FrameSentences(const Facts& facts) {
  std::vector<std::string> sentences;
  for (const auto& row : kFrameSentences) {
    if (facts[row.hint]) sentences.emplace_back(row.sentence);
  }
  return sentences;
}

std::string CardFlag(const Facts& facts) {
  std::string error;
  if (!facts.card.empty() && !absl::StartsWith(facts.card, "custom:")) {
    if (const std::optional<Card> card = FindCard(facts.card, &error)) return card->name;
  }
  const auto& capacity = facts[Quantity::kCapacity];
  if (!capacity.has_value()) return "";
  const auto bytes = static_cast<double>(capacity->bytes);
  for (const std::string_view name : kUsualCards) {
    const std::optional<Card> card = FindCard(name, &error);
    const auto memory = static_cast<double>(card->memory);
    if (bytes > 0.99 * memory && bytes < 1.01 * memory) return card->name;
  }
  return "";
}

absl::Span<const std::string_view> CardFlags() { return kUsualCards; }

}  // namespace memreplay
