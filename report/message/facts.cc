#include "report/message/facts.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "report/words/record_faults.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

constexpr size_t kMessageLength = 3000;
constexpr size_t kMaxProcesses = 64;
constexpr size_t kMaxConf = 300;
// cudaMallocAsync's limit if none was set: 2^64 bytes and more.
constexpr std::string_view kNoLimit = "17179869184";

// Returns text with one blank between words; control characters become blanks too.
std::string OneLine(std::string_view text) {
  std::string line;
  line.reserve(text.size());
  for (const char c : text) {
    if (static_cast<unsigned char>(c) <= ' ') {
      if (!line.empty() && line.back() != ' ') line += ' ';
    } else {
      line += c;
    }
  }
  return line;
}

std::string_view SkipSeparators(std::string_view text) {
  size_t at = 0;
  while (at < text.size() && at < 6 &&
         (text[at] == ' ' || text[at] == ':' || text[at] == '=' || text[at] == '"' ||
          text[at] == '\'' || text[at] == '`' || text[at] == '\n')) {
    ++at;
  }
  return text.substr(at);
}

// Returns the message of the failure in the window, from its beginning to the next one.
std::string MessageText(const LogExtract& extract) {
  const std::string_view window = extract.window;
  size_t begin = extract.anchor;
  const std::string_view begins = extract.form->begins;
  if (!begins.empty()) {
    const size_t start = begin - std::min(begin, kNearBefore);
    const size_t found = window.substr(start, begin - start).rfind(begins);
    if (found != std::string_view::npos) begin = start + found;
  }
  size_t length = kMessageLength;
  // If two ranks fail at once, each has its own message.
  const std::string_view anchor = extract.form->anchor;
  const size_t next = window.find(anchor, extract.anchor + anchor.size());
  if (next != std::string_view::npos) length = std::min(length, next - begin);
  return OneLine(window.substr(begin, length));
}

std::optional<Amount> FieldAt(std::string_view text, size_t at, const Field& field) {
  if (field.side == Side::kBefore) return ReadAmountBackwards(text.substr(0, at));
  std::string_view rest = SkipSeparators(text.substr(at + field.words.size()));
  if (field.side == Side::kAfter) {
    // NCCL and Triton print plain bytes.
    return ReadAmount(rest, 1);
  }
  // Reads "(19.77/22.05 GiB)", "59.41GB / 62.58GB" or "(0.9, 19.84 GiB)".
  const size_t open = rest.find('(');
  if (open != std::string_view::npos && open < 12) rest.remove_prefix(open + 1);
  const size_t parting = rest.substr(0, 40).find_first_of("/,");
  if (parting == std::string_view::npos) return std::nullopt;
  std::string_view second = rest.substr(parting + 1);
  while (second.starts_with(' ')) second.remove_prefix(1);
  const std::optional<Amount> right = ReadAmount(second);
  if (field.side == Side::kSecond || !right.has_value()) return right;
  return ReadAmount(rest, int64_t{1} << 30);
}

void ReadMessageFields(std::string_view text, Facts* facts) {
  for (const Field& field : MessageFields()) {
    std::optional<Amount>& amount = facts->amounts[static_cast<size_t>(field.quantity)];
    if (amount.has_value()) continue;
    const size_t at = text.find(field.words);
    if (at != std::string_view::npos) amount = FieldAt(text, at, field);
  }
  for (const NumberField& field : MessageNumbers()) {
    std::optional<double>& number = facts->numbers[static_cast<size_t>(field.number)];
    const size_t at = text.find(field.words);
    if (number.has_value() || at == std::string_view::npos) continue;
    number = ReadNumber(text.substr(at + field.words.size()));
  }
  if (text.find(kNoLimit) != std::string_view::npos) {
    facts->amounts[static_cast<size_t>(Quantity::kLimit)].reset();
  }
}

void ReadContextFields(std::string_view text, Facts* facts) {
  for (const Field& field : ContextFields()) {
    std::optional<Amount>& amount = facts->amounts[static_cast<size_t>(field.quantity)];
    const size_t at = text.rfind(field.words);
    if (amount.has_value() || at == std::string_view::npos) continue;
    amount = FieldAt(text, at, field);
  }
  for (const NumberField& field : ContextNumbers()) {
    std::optional<double>& number = facts->numbers[static_cast<size_t>(field.number)];
    // Use the last occurrence that is followed by a number.
    for (size_t at = text.rfind(field.words); !number.has_value() && at != std::string_view::npos;
         at = at == 0 ? std::string_view::npos : text.rfind(field.words, at - 1)) {
      std::string_view rest = SkipSeparators(text.substr(at + field.words.size()));
      if (rest.starts_with('(')) rest.remove_prefix(1);
      number = ReadNumber(rest);
    }
  }
}

// Reads "Process 4711 has 14.85 GiB memory in use" and "this process has ...".
void ReadProcesses(std::string_view text, Facts* facts) {
  constexpr std::string_view kProcess = "Process ";
  for (size_t at = text.find(kProcess);
       at != std::string_view::npos && facts->processes.size() < kMaxProcesses;
       at = text.find(kProcess, at + 1)) {
    std::string_view rest = text.substr(at + kProcess.size());
    const size_t digits = std::min(rest.find_first_not_of("0123456789"), rest.size());
    CardProcess process;
    if (digits == 0 || !absl::SimpleAtoi(ToAbsl(rest.substr(0, digits)), &process.pid)) continue;
    rest.remove_prefix(digits);
    if (!rest.starts_with(" has ")) continue;
    const std::optional<Amount> bytes = ReadAmount(rest.substr(5));
    if (!bytes.has_value()) continue;
    process.bytes = *bytes;
    process.has_bytes = true;
    facts->processes.push_back(std::move(process));
  }
}

std::optional<int64_t> NumberAfter(std::string_view text, std::string_view words) {
  const size_t at = text.rfind(words);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view rest = text.substr(at + words.size());
  int64_t number = 0;
  const size_t digits = std::min(rest.find_first_not_of("0123456789"), rest.size());
  if (digits == 0 || digits > 6 || !absl::SimpleAtoi(ToAbsl(rest.substr(0, digits)), &number)) {
    return std::nullopt;
  }
  return number;
}

// Reads "GPU 0 has", "(GPU 0;", "NPU 3", "on device 0" or "cuda:0".
void ReadGpu(std::string_view text, Facts* facts) {
  for (const std::string_view words : {"GPU  ", "GPU ", "NPU ", "device cuda:", "on device "}) {
    const size_t at = text.find(words);
    if (at == std::string_view::npos) continue;
    facts->gpu = NumberAfter(text.substr(at, words.size() + 8), words);
    if (facts->gpu.has_value()) return;
  }
}

// Reads the prefixes of lines in logs of several ranks.
void ReadRank(const LogExtract& extract, Facts* facts) {
  const std::string_view window = extract.window;
  size_t begin = window.rfind('\n', extract.anchor);
  begin = begin == std::string_view::npos ? 0 : begin + 1;
  begin = std::max(begin, extract.anchor - std::min<size_t>(extract.anchor, 400));
  const std::string_view line = window.substr(begin, extract.anchor - begin);
  for (const std::string_view words :
       {"[rank", "rank=", "local_rank: ", "rank: ", "RANK ", "Rank ", "rank ", " TP", "[default"}) {
    facts->rank = NumberAfter(line, words);
    if (facts->rank.has_value()) return;
  }
  // This is mpirun's "[1,3]<stderr>:".
  const size_t mpi = line.find(">:");
  if (line.starts_with("[1,") && mpi != std::string_view::npos) {
    facts->rank = NumberAfter(line.substr(0, mpi), "[1,");
  }
}

constexpr struct {
  std::string_view words;
  Circumstance circumstance;
} kCircumstances[] = {
    {"cudaMallocAsync", Circumstance::kAsyncIsOn},
    {"comfy", Circumstance::kComfy},
    {"Comfy", Circumstance::kComfy},
    {"C:\\", Circumstance::kWindows},
    {"D:\\", Circumstance::kWindows},
    {":\\Users", Circumstance::kWindows},
    {"\\site-packages\\", Circumstance::kWindows},
    {"WDDM", Circumstance::kWindows},
    {"Windows 1", Circumstance::kWindows},
    {"microsoft-standard", Circumstance::kWsl},
    {"WSL", Circumstance::kWsl},
    {"wsl2", Circumstance::kWsl},
    {"/mnt/c/", Circumstance::kWsl},
    {"NVIDIA GB10", Circumstance::kGb10},
    {"(GB10", Circumstance::kGb10},
    {"GB10 ", Circumstance::kGb10},
    {"DGX Spark", Circumstance::kGb10},
    {"Jetson", Circumstance::kGb10},
    {"Tegra", Circumstance::kGb10},
    {"AGX Orin", Circumstance::kGb10},
    {"Orin Nano", Circumstance::kGb10},
    {"NV_ERR_NO_MEMORY", Circumstance::kGb10},
    {"gfx1151", Circumstance::kStrixHalo},
    {"gfx1150", Circumstance::kStrixHalo},
    {"Radeon 8060S", Circumstance::kStrixHalo},
    {"Radeon 8050S", Circumstance::kStrixHalo},
    {"Radeon 890M", Circumstance::kStrixHalo},
    {"Radeon 780M", Circumstance::kStrixHalo},
    {"RYZEN AI MAX", Circumstance::kStrixHalo},
    {"Ryzen AI Max", Circumstance::kStrixHalo},
    {"Strix Halo", Circumstance::kStrixHalo},
    {"strix-halo", Circumstance::kStrixHalo},
    {"MIG 1g", Circumstance::kMig},
    {"MIG 2g", Circumstance::kMig},
    {"MIG 3g", Circumstance::kMig},
    {"MIG 4g", Circumstance::kMig},
    {"MIG 7g", Circumstance::kMig},
    {"MIG-", Circumstance::kMig},
    {"docker", Circumstance::kContainer},
    {"kubernetes", Circumstance::kContainer},
    {"/vllm/", Circumstance::kVllm},
    {"EngineCore", Circumstance::kVllm},
    {"VllmWorker", Circumstance::kVllm},
    {"vllm serve", Circumstance::kVllm},
    {"vllm.entrypoints", Circumstance::kVllm},
    {"gpu_memory_utilization", Circumstance::kVllm},
    {"sglang/srt", Circumstance::kSglang},
    {"sglang.launch_server", Circumstance::kSglang},
    {"mem-fraction-static", Circumstance::kSglang},
    {"ray::", Circumstance::kRay},
    {"raylet", Circumstance::kRay},
    {"/deepspeed/", Circumstance::kDeepSpeed},
    {"wake_up", Circumstance::kTrainingAndServing},
    {"/verl/", Circumstance::kTrainingAndServing},
    {"OpenRLHF", Circumstance::kTrainingAndServing},
    {"openrlhf", Circumstance::kTrainingAndServing},
    {"Loading checkpoint shards", Circumstance::kLoadingWeights},
    {"from_pretrained", Circumstance::kLoadingWeights},
    {"XPU out of memory", Circumstance::kXpu},
    {"torch.xpu", Circumstance::kXpu},
    {"UR_RESULT", Circumstance::kXpu},
    {"HIP out of memory", Circumstance::kHip},
    {"HIP error", Circumstance::kHip},
    {"rocm", Circumstance::kHip},
    {"NPU out of memory", Circumstance::kNpu},
    {"torch_npu", Circumstance::kNpu},
};

// Reads PYTORCH_CUDA_ALLOC_CONF=... and os.environ["PYTORCH_..."] = "...", but not "try setting
// ...".
void ReadConf(std::string_view text, Facts* facts) {
  constexpr std::string_view kConf = "_ALLOC_CONF";
  for (size_t at = text.find(kConf); at != std::string_view::npos; at = text.find(kConf, at + 1)) {
    const std::string_view before =
        text.substr(at - std::min<size_t>(at, 40), std::min<size_t>(at, 40));
    if (before.find("setting ") != std::string_view::npos ||
        before.find(" try ") != std::string_view::npos) {
      continue;
    }
    std::string_view rest = text.substr(at + kConf.size());
    size_t skipped = 0;
    bool is_set = false;
    while (skipped < rest.size() && skipped < 10 &&
           std::string_view(" =:\"'`],)").find(rest[skipped]) != std::string_view::npos) {
      is_set |= rest[skipped] == '=' || rest[skipped] == ':' || rest[skipped] == ',';
      ++skipped;
    }
    if (!is_set) continue;
    rest.remove_prefix(skipped);
    size_t length = 0;
    while (length < rest.size() && length < kMaxConf &&
           (absl::ascii_isalnum(static_cast<unsigned char>(rest[length])) ||
            std::string_view("_:,.[]>-").find(rest[length]) != std::string_view::npos)) {
      ++length;
    }
    std::string_view conf = rest.substr(0, length);
    while (!conf.empty() && (conf.back() == '.' || conf.back() == ',' || conf.back() == ':')) {
      conf.remove_suffix(1);
    }
    if (conf.find(':') != std::string_view::npos) facts->conf = conf;
  }
}

// Reads the name of the GPU if nvidia-smi's table does not have it.
void ReadCardName(std::string_view text, Facts* facts) {
  if (!facts->card.empty()) return;
  for (const std::string_view words : {"NVIDIA GeForce ", "NVIDIA RTX ", "NVIDIA A", "NVIDIA H",
                                       "NVIDIA L", "NVIDIA B", "NVIDIA GB", "Tesla "}) {
    const size_t at = text.find(words);
    if (at == std::string_view::npos) continue;
    std::string_view name = text.substr(at, 40);
    // The name ends at two blanks, or at a character that is not part of a name.
    name = name.substr(0, std::min(name.find("  "), name.size()));
    size_t length = 0;
    while (length < name.size() && (absl::ascii_isalnum(static_cast<unsigned char>(name[length])) ||
                                    name[length] == ' ' || name[length] == '-')) {
      ++length;
    }
    name = ToStd(absl::StripAsciiWhitespace(ToAbsl(name.substr(0, length))));
    if (name.find_first_of("0123456789") == std::string_view::npos) continue;
    facts->card = name;
    return;
  }
}

// Returns all facts but those of the frames; `all` is the text that has settings and circumstances.
Facts ReadAllButFrames(const LogExtract& extract, const std::string& all) {
  Facts facts;
  facts.form = extract.form;
  facts.failures = extract.failures;
  facts.different = extract.different;
  const std::string_view window = extract.window;
  const std::string message = MessageText(extract);
  ReadMessageFields(message, &facts);
  ReadProcesses(message, &facts);
  ReadGpu(message, &facts);
  ReadRank(extract, &facts);
  // A server's error quotes the allocator's, before or inside it.
  if (extract.form->kind == FormKind::kServing) {
    const size_t quoted = window.rfind("ried to allocate");
    if (quoted != std::string_view::npos) {
      const std::string figures = OneLine(window.substr(quoted, kMessageLength));
      ReadMessageFields(figures, &facts);
      if (facts.processes.empty()) ReadProcesses(figures, &facts);
      if (!facts.gpu.has_value()) ReadGpu(figures, &facts);
    }
  }
  ReadContextFields(all, &facts);
  ReadConf(all, &facts);
  ReadMemorySummary(window, &facts);
  ReadNvidiaSmi(window, &facts);
  ReadCardName(all, &facts);
  facts.knows_outside = window.find(kAssumedOutside) != std::string_view::npos;
  facts.is_recorded = window.find(kNextSteps) != std::string_view::npos;
  for (const auto& row : kCircumstances) {
    if (all.find(row.words) != std::string::npos) {
      facts.circumstances[static_cast<size_t>(row.circumstance)] = true;
    }
  }
  facts.circumstances[static_cast<size_t>(Circumstance::kExpandableIsOn)] =
      absl::StrContains(facts.conf, "expandable_segments:True") ||
      absl::StrContains(facts.conf, "expandable_segments:true");
  return facts;
}

std::string AllText(const LogExtract& extract) {
  return StrCat(extract.context, "\n", extract.window);
}

}  // namespace

Facts ReadFacts(const LogExtract& extract) {
  Facts facts = ReadAllButFrames(extract, AllText(extract));
  ReadTraceback(extract.window, extract.anchor, &facts);
  return facts;
}

Facts ReadFacts(const LogExtract& extract, const std::vector<SourceFrame>& frames) {
  std::string all = AllText(extract);
  for (const SourceFrame& frame : frames) StrAppend(&all, "\n", frame.file, "\n", frame.code);
  Facts facts = ReadAllButFrames(extract, all);
  ReadFrames(frames, &facts);
  return facts;
}

}  // namespace memreplay
