#include "report/message/advice.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
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

constexpr char kSnapshot[] =
    "To see what holds it: torch.cuda.memory._record_memory_history() before the loop, "
    "torch.cuda.memory._dump_snapshot(\"snapshot.pickle\") in an except around it, then memreplay "
    "oom snapshot.pickle.";

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
  // `pieces` are the sentence.
  template <typename... Pieces>
  void Add(std::string_view kind, std::string_view brief, const Pieces&... pieces) {
    if (advice_.size() < kMaxAdvice) {
      advice_.push_back({std::string(kind), std::string(brief), StrCat(pieces...)});
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
      Add("snapshot", "take a snapshot", kSnapshot);
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
    Add("native_allocator", "go back to PyTorch's own allocator",
        "Take backend:cudaMallocAsync out of the settings (ComfyUI: --disable-cuda-malloc) and set "
        "expandable_segments:True: cudaMallocAsync ignores it, and what it leaves in pieces shows "
        "in no figure.");
    return;
  }
  if (facts_[Circumstance::kExpandableIsOn]) {
    Snapshot();
    return;
  }
  if (facts_[Circumstance::kWindows] && !facts_[Circumstance::kWsl]) {
    Add("setting", "set PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:128",
        "Set PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:128 before Python starts; expandable "
        "segments, which do better, exist on Linux only (WSL too).");
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
  const std::string at = Where(" at ");
  if (facts_[FrameHint::kEvaluation]) {
    Add("reduce", "keep less of the evaluation",
        "The evaluation keeps the logits of every batch on the GPU: set eval_accumulation_steps, "
        "or return only the arg max from preprocess_logits_for_metrics.");
  } else if (facts_[FrameHint::kUpcastLogits] || facts_[FrameHint::kLoss]) {
    Add("reduce", "make the logits smaller",
        "The logits (tokens x vocabulary, copied to float32) are what did not fit", at,
        ": use a fused or chunked cross-entropy, or fewer tokens a step.");
  } else if (facts_[FrameHint::kOptimizerTemporaries]) {
    Add("reduce", "do without the optimizer's temporaries",
        "Give the optimizer fused=True (or foreach=False): the multi-tensor step makes temporaries "
        "as large as the parameters.");
  } else if (facts_[FrameHint::kOptimizerState]) {
    Add("reduce", "make the optimizer's state smaller",
        "The optimizer makes its state in its first step (Adam: 8 bytes a parameter in float32): "
        "use an 8-bit or sharded optimizer, or train fewer parameters.");
  } else if (facts_[FrameHint::kAttention]) {
    Add("reduce", "use fused attention",
        "Attention by hand keeps a matrix of sequence x sequence for each head", at,
        ": use torch.nn.functional.scaled_dot_product_attention (Transformers: "
        "attn_implementation=\"sdpa\").");
  } else if (facts_[FrameHint::kCacheCat]) {
    Add("reduce", "preallocate the cache",
        "A cache that grows by torch.cat is there twice while it grows", at,
        ": allocate it once for the longest sequence (Transformers: "
        "cache_implementation=\"static\"), or generate fewer tokens.");
  } else if (facts_[FrameHint::kLoading]) {
    Add("reduce", "load the weights once", "Loading keeps the checkpoint and the model at once", at,
        ": torch.load(..., map_location=\"cpu\", mmap=True), then load_state_dict(..., "
        "assign=True); or load in bfloat16, 8 or 4 bits.");
  } else if (facts_[FrameHint::kConvolution]) {
    Add("reduce", "make the input of the convolution smaller",
        "A convolution needed its output and a workspace", at,
        ": smaller images or tiles, or fewer at once; torch.backends.cudnn.benchmark = "
        "False tries fewer workspaces.");
  } else if (facts_[FrameHint::kMoving] && !facts_[FrameHint::kBackward]) {
    Add("reduce", "make the weights smaller", "It failed while the model moved to the GPU", at,
        ": load it in bfloat16, 8 or 4 bits, or spread it over GPUs or the CPU "
        "(device_map=\"auto\").");
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
  Add("other_process", "take another GPU",
      "Or run elsewhere: CUDA_VISIBLE_DEVICES=N with a free GPU", gpu, ".");
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
    Add("lower_utilization", "lower gpu_memory_utilization",
        "Lower gpu_memory_utilization (0.4 to 0.5 where a trainer shares the GPU): on waking up "
        "the server must find free what it had.");
    Add("leave_room", "release the trainer's cache before wake_up()",
        "Before wake_up(), offload the trainer's optimizer and weights and call "
        "torch.cuda.empty_cache(); PyTorch's cache is not free to cumem.");
    return;
  }
  if (facts_.form->strength < 4) {
    Add("numbers", "run again with NCCL_DEBUG=WARN",
        "Run again with NCCL_DEBUG=WARN: the line \"NCCL WARN Cuda failure\" names the call; \"out "
        "of memory\" there means that the GPU was full.");
  }
  const std::string who = absl::StrContains(ToAbsl(name), "NCCL") ? "NCCL" : std::string(name);
  LeaveRoom(who);
  if (who == "NCCL") {
    Add("reduce", "let NCCL take less",
        "NCCL takes some hundred MiB a communicator: fewer process groups, NCCL_BUFFSIZE=1048576, "
        "or NCCL_NVLS_ENABLE=0.");
  } else if (absl::StrContains(ToAbsl(facts_.form->anchor), "NOT_INITIALIZED")) {
    Add("check", "rule out an index error",
        "If nvidia-smi shows room, an earlier kernel failed: CUDA_LAUNCH_BLOCKING=1 shows which "
        "(an index beyond an embedding or the number of classes is usual).");
  }
  Add("numbers", "watch nvidia-smi",
      "nvidia-smi while it runs shows whether the GPU is full and for whom; settings of "
      "PYTORCH_CUDA_ALLOC_CONF cannot help, since the call does not go through PyTorch's "
      "allocator.");
}

void Adviser::Host() {
  const std::string_view name = facts_.form->name;
  if (name == "Windows: page file") {
    Add("host", "make the page file larger",
        "Make Windows' page file larger (System > Advanced > Virtual memory) or close other "
        "programs; fewer DataLoader workers load fewer copies of CUDA's libraries.");
    return;
  }
  if (name.starts_with("Slurm")) {
    Add("host", "request more memory of Slurm",
        "Request more main memory of Slurm, --mem or --mem-per-cpu; sacct -j JOB -o MaxRSS,ReqMem "
        "shows what it had.");
  } else if (name.starts_with("a build")) {
    Add("host", "compile fewer files at once",
        "Compile fewer files at once: MAX_JOBS=2 (pip, PyTorch's extensions), make -j2; each "
        "compiler takes some GiB of main memory.");
    return;
  }
  if (absl::StrContains(ToAbsl(name), "Ray")) {
    Add("host", "run fewer tasks at once on the node",
        "Run fewer tasks or actors at once on the node (num_cpus= or memory= for each), or make "
        "them load their data in pieces.");
    Add("host", "see who holds the memory",
        "ray logs raylet.out, and the \"Top 10 memory users\" under the error, say which processes "
        "hold it; the object store counts too.");
  } else if (facts_[FrameHint::kLoading] || facts_[Circumstance::kLoadingWeights]) {
    Add("host", "load the weights with less main memory",
        "Load with less main memory: safetensors, torch.load(..., mmap=True), "
        "low_cpu_mem_usage=True, and not in every rank at once.");
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
    Add("numbers", "make sure with dmesg",
        "Make sure: sudo dmesg -T | grep -i \"killed process\" (in Kubernetes: kubectl describe "
        "pod, reason OOMKilled) names the process and what it had.");
  }
  Add("host", "give it more",
      "Give it more: the container's limit (docker run --memory, resources.limits), swap, or a "
      "machine with more memory.");
}

void Adviser::Environment() {
  if (facts_.form->kind == FormKind::kBlockLimit ||
      (facts_[Circumstance::kXpu] &&
       facts_[Quantity::kTried].value_or(Amount()).bytes >= (int64_t{4} << 30))) {
    Add("smaller_request", "keep each tensor below 4 GiB",
        "Keep each tensor below 4 GiB (a smaller batch, or in chunks)",
        Where("; this one is made at "), ".");
    Add("environment", "allow larger blocks",
        "Newer drivers allow larger blocks: UR_L0_ENABLE_RELAXED_ALLOCATION_LIMITS=1 in the "
        "environment, with a current Intel driver.");
    return;
  }
  if (facts_[Circumstance::kWsl]) {
    Add("environment", "give WSL more memory",
        "Give WSL more memory: memory= and swap= in %USERPROFILE%\\.wslconfig, then wsl "
        "--shutdown; each GPU allocation is charged there too.");
    Add("pinned", "do without pinned memory",
        "Try pin_memory=False: pinned memory is scarce under WSL.");
  } else if (facts_[Circumstance::kWindows]) {
    Add("environment", "make the page file larger",
        "Make Windows' page file larger (System > Advanced > Virtual memory) and close other "
        "programs: each GPU allocation is charged to it.");
  } else if (IsMaybeWindows()) {
    Add("environment", "make the page file (WSL: memory= in .wslconfig) larger",
        "The message lists no process, as on Windows and WSL, where GPU memory is charged to main "
        "memory and the page file: make the page file larger (WSL: memory= in "
        "%USERPROFILE%\\.wslconfig), and close other programs.");
  } else if (facts_[Circumstance::kExpandableIsOn]) {
    Add("environment", "raise vm.max_map_count",
        "Raise the number of mappings: sudo sysctl vm.max_map_count=1048576; or leave "
        "expandable_segments off for a comparison.");
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
    if (facts_[Circumstance::kGb10]) {
      Add("drop_caches", "drop the page cache",
          "Drop the page cache just before the start: sync; echo 3 | sudo tee "
          "/proc/sys/vm/drop_caches.");
    }
    if (*judgement_.utilization < kMinUtilization) {
      OtherProcesses();
    } else if (share >= 0.7) {
      Add("lower_utilization", StrCat("start with ", setting, " ", ratio(*judgement_.utilization)),
          "Start with ", setting, " ", ratio(*judgement_.utilization), " or less.");
      OtherProcesses();
    } else {
      OtherProcesses();
      Add("lower_utilization", StrCat("start with ", setting, " ", ratio(*judgement_.utilization)),
          "Or start with ", setting, " ", ratio(*judgement_.utilization),
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
    Add("reduce", "make the cache smaller",
        "Or make the cache smaller: --kv-cache-dtype fp8, or spread the model over more GPUs "
        "(--tensor-parallel-size).");
    return;
  }
  if (facts_.form->anchor == "No available memory for the cache blocks" ||
      facts_.form->name == "SGLang: no memory for the KV cache") {
    if (may_raise) {
      Add("raise_utilization", StrCat("raise ", setting, " to ", is_sglang ? "0.9" : "0.95"),
          "Raise ", setting, " to ", is_sglang ? "0.9" : "0.95",
          utilization.has_value() ? StrCat(" from ", ratio(*utilization)) : "", ".");
    }
    Add("reduce", "make the weights smaller or take more GPUs",
        "Make the weights smaller or spread them: a quantized model, --tensor-parallel-size 2, "
        "--cpu-offload-gb.");
    Add("reduce", "shrink what is measured",
        is_sglang
            ? "Take less while it works: --chunked-prefill-size 2048, --max-running-requests 16."
            : "Take less while it measures: --max-num-batched-tokens 2048, --max-num-seqs 16, "
              "--enforce-eager (no CUDA graphs).");
    return;
  }
  if (facts_.form->name == "vLLM: memory changed while profiling") {
    Add("other_process", "start one server after the other",
        "Start servers one after the other on a GPU, and end what else runs on it.");
    OtherProcesses();
    return;
  }
  if (facts_[FrameHint::kLoading] || facts_[Circumstance::kLoadingWeights]) {
    Add("reduce", "make the weights smaller or take more GPUs",
        "The weights themselves do not fit: a quantized model, --tensor-parallel-size 2, or "
        "--cpu-offload-gb.");
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
    Add("numbers", "show the error's own text",
        "Give the whole text of the error, with its traceback, to memreplay explain.");
  } else if (facts_.form->kind == FormKind::kOther) {
    Add("numbers", "see with nvidia-smi who holds the GPU",
        "nvidia-smi shows who holds the GPU. JAX and TensorFlow take most of it at their start: "
        "XLA_PYTHON_CLIENT_PREALLOCATE=false, or tf.config.experimental.set_memory_growth.");
    Add("reduce", "use less memory", "Then use less memory: a smaller batch, or bfloat16.");
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
    Add("environment", "check the slice",
        "Check which slice the program sees: nvidia-smi -L, and CUDA_VISIBLE_DEVICES=MIG-...; with "
        "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:False PyTorch 2.11 and later ask NVML less.");
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
  Add("smaller_request", "look at the shapes of that one tensor", "Look at the shapes where", at,
      ": a tensor of this size usually comes of one dimension too many (a broadcast, a "
      "missing chunk, an image or sequence that was not cut).");
  Add("reduce", "compute it in pieces",
      "If it is meant, compute it in pieces, or spread it over GPUs.");
  Record();
}

void Adviser::Limit() {
  if (facts_.form->kind == FormKind::kMps) {
    Reduce();
    Add("raise_limit", "raise the watermark",
        "PYTORCH_MPS_HIGH_WATERMARK_RATIO=0.0 lifts the limit; then macOS swaps, and may end the "
        "program: close others first.");
    Add("release_cache", "release the cache",
        "torch.mps.empty_cache() between steps returns what is cached.");
    return;
  }
  Add("raise_limit", "raise the memory fraction",
      "Raise or remove the limit: torch.cuda.set_per_process_memory_fraction(), "
      "per_process_memory_fraction in PYTORCH_CUDA_ALLOC_CONF, or the framework's setting of it.");
  Reduce();
  Snapshot();
}

bool Adviser::OtherProgram() {
  for (const auto& row : kPrograms) {
    if (!facts_.form->name.starts_with(row.name)) continue;
    Add(row.kind, row.brief, row.sentence);
    Add("numbers", "see with nvidia-smi who holds the GPU",
        "nvidia-smi shows who else holds the GPU while it runs, free -h who holds main memory.");
    return true;
  }
  return false;
}

std::vector<Advice> Adviser::Advise() {
  if (OtherProgram()) return advice_;
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
      if (facts_.form->kind == FormKind::kAsync) {
        Reduce();
        Setting();
      } else {
        Reduce();
      }
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
      Add("outside", "load fewer libraries into this process",
          "Find what else takes the GPU in this process: NCCL communicators, a second framework "
          "(TensorFlow, CuPy, ONNX Runtime), cuDNN's and cuBLAS's workspaces; "
          "CUDA_MODULE_LOADING=LAZY loads fewer kernels.");
      Reduce();
      Record();
      break;
    case Explanation::refused_with_free: Environment(); break;
    case Explanation::library: Library(); break;
    case Explanation::host: Host(); break;
    case Explanation::pinned:
      Add("pinned", "do without pinned memory", "Set pin_memory=False in the DataLoader",
          Where(", or where it is requested: "), ".");
      Add("pinned", "pin less",
          "Or pin less: fewer workers, a smaller prefetch_factor, less offload to the CPU.");
      if (facts_[Circumstance::kWsl] || facts_[Circumstance::kWindows]) {
        Add("environment", "give WSL more memory",
            "Under WSL only a part of main memory can be pinned: raise memory= in "
            "%USERPROFILE%\\.wslconfig.");
      } else {
        Add("environment", "look at the limits",
            "Look at ulimit -l and the container's memory limit; under WSL and Windows only a part "
            "of main memory can be pinned.");
      }
      break;
    case Explanation::shared_memory:
      Add("shm", "give the container more /dev/shm",
          "Give it more: docker run --shm-size=8g (or --ipc=host); in Kubernetes an emptyDir of "
          "medium Memory at /dev/shm. df -h /dev/shm shows what there is.");
      Add("shm", "use less of it",
          "Or use less of it: num_workers=0 or fewer, a smaller prefetch_factor, or "
          "torch.multiprocessing.set_sharing_strategy(\"file_system\").");
      break;
    case Explanation::unified:
      if (facts_[Circumstance::kGb10]) {
        Add("drop_caches", "drop the page cache",
            "Drop the page cache and close other programs: sync; echo 3 | sudo tee "
            "/proc/sys/vm/drop_caches. free -h shows what is left; CUDA counts cached files as "
            "used.");
        Reduce();
      } else {
        Add("environment", "let the GPU use more of the host's memory",
            "Let the GPU use more: kernel parameters amdgpu.gttsize and ttm.pages_limit, or the "
            "BIOS's share for graphics (UMA frame buffer); close other programs.");
        Reduce();
      }
      break;
    case Explanation::serving: Serving(); break;
    case Explanation::not_memory:
      if (facts_.form->kind == FormKind::kBadSize) {
        Add("fix_size", "find the wrong size", "Find the wrong size", Where(" at "),
            ": print the shapes, and look for an earlier error (a timeout of NCCL, a "
            "truncated file) above this one.");
        Add("check", "run with CUDA_LAUNCH_BLOCKING=1",
            "CUDA_LAUNCH_BLOCKING=1 shows an earlier kernel's failure where it happens.");
      } else {
        Add("kernel", "make the kernel's blocks smaller",
            "Make the kernel smaller: block sizes, num_stages or num_warps; a batch or a memory "
            "setting changes nothing.");
        Add("kernel", "update or choose another kernel",
            "If the kernel is a library's, update it or choose another backend (vLLM: "
            "--attention-backend): it was tuned for a GPU with more shared memory.");
      }
      break;
    case Explanation::no_numbers: Numbers(); break;
    case Explanation::leak:
      break;  // is what the live process says, not a text
    // Protobuf's own, so that a verdict without a case does not compile.
    case proto::Explanation_Verdict_Explanation_Verdict_INT_MIN_SENTINEL_DO_NOT_USE_:
    case proto::Explanation_Verdict_Explanation_Verdict_INT_MAX_SENTINEL_DO_NOT_USE_: break;
  }
  // Advice that is given twice is listed once.
  std::vector<Advice> advice;
  for (Advice& one : advice_) {
    const bool is_new = absl::c_none_of(
        advice, [&](const Advice& other) { return other.sentence == one.sentence; });
    if (is_new) advice.push_back(std::move(one));
  }
  return advice;
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
