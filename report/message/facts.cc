#include "report/message/facts.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "report/message/passage.h"
#include "report/message/rows.h"
#include "report/words/record_faults.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

constexpr size_t kMessageLength = 3000;
constexpr size_t kNumberLength = 40;
constexpr size_t kMaxProcesses = 64;
constexpr size_t kMaxConf = 300;
constexpr size_t kBadSizeDigits = 17;  // 100 petabytes
constexpr size_t kHintBefore = 120;
constexpr size_t kHintAfter = 60;
// cudaMallocAsync's limit if none was set: 2^64 bytes and more.
constexpr std::string_view kNoLimit = "17179869184";

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
Traced MessageText(const LogExtract& extract) {
  Passage passage = PassageAround(extract.window, extract.anchor, kNearBefore, kMessageLength);
  const std::string& text = passage.text;
  const std::string anchor = WithoutBlanks(extract.form->anchor);
  const std::string begins = WithoutBlanks(extract.form->begins);
  const size_t found =
      begins.empty() ? std::string::npos : text.substr(0, passage.at).rfind(begins);
  const size_t begin = found == std::string::npos ? passage.at : found;
  // If two ranks fail at once, each has its own message.
  const size_t first = std::min(text.find(anchor, passage.at), text.size());
  passage.Resize(std::min(text.find(anchor, first + 1), text.size()));
  passage.EraseFirst(begin);
  return passage;
}

// Returns an amount whose place is one in `text`, of which `part` is a part.
std::optional<Amount> AmountIn(std::string_view text, std::string_view part,
                               int64_t default_unit = 0) {
  std::optional<Amount> amount = ReadAmount(part, default_unit);
  if (amount.has_value()) amount->at = static_cast<size_t>(part.data() - text.data());
  return amount;
}

std::optional<Amount> FieldAt(std::string_view text, size_t at, size_t length, const Field& field) {
  if (field.side == Side::kBefore) {
    const std::optional<Amount> amount = ReadAmountBackwards(text.substr(0, at));
    // Behind a prefix it would be the end of a number.
    std::string_view before = text.substr(0, amount.value_or(Amount()).at);
    if (before.ends_with('.')) before.remove_suffix(1);
    const bool is_whole =
        !before.empty() && (absl::ascii_islower(before.back()) ||
                            std::string_view("(;, ").find(before.back()) != std::string::npos);
    return is_whole ? amount : std::nullopt;
  }
  std::string_view rest = SkipSeparators(text.substr(at + length));
  if (field.side == Side::kAfter) return AmountIn(text, rest);
  if (field.side == Side::kBytes) {
    // Triton prints plain bytes; at the end, there may have been more digits.
    const size_t digits = rest.find_first_not_of("0123456789");
    if (digits >= std::min(rest.size(), kBadSizeDigits)) return std::nullopt;
    const std::string_view behind = rest.substr(digits);
    // A letter may begin a prefix, and the number go on behind it.
    const bool is_whole = behind == " " || behind.starts_with("Hardware") ||
                          behind.starts_with("is") || behind.starts_with("failed") ||
                          std::string_view(".,\\\"'`").find(behind[0]) != std::string_view::npos;
    return is_whole ? AmountIn(text, rest.substr(0, digits), 1) : std::nullopt;
  }
  // Reads "(19.77/22.05 GiB)", "59.41GB / 62.58GB" or "(0.9, 19.84 GiB)".
  const size_t open = rest.find('(');
  if (open != std::string_view::npos && open < 12) rest.remove_prefix(open + 1);
  const size_t parting = rest.substr(0, 40).find_first_of("/,");
  if (parting == std::string_view::npos) return std::nullopt;
  std::string_view second = rest.substr(parting + 1);
  while (second.starts_with(' ')) second.remove_prefix(1);
  const std::optional<Amount> right = AmountIn(text, second);
  if (field.side == Side::kSecond || !right.has_value()) return right;
  const std::optional<Amount> left = AmountIn(text, rest, int64_t{1} << 30);
  return left.has_value() && rest.find_first_not_of(' ', left->length) == parting ? left
                                                                                  : std::nullopt;
}

// Returns the number that `text` begins with, if it does not end with that: there may have been
// more digits.
std::optional<double> WholeNumber(std::string_view text) {
  size_t length = 0;
  const std::optional<double> number = ReadNumber(text, &length);
  const bool is_cut = length == text.size() || text.substr(length) == ".";
  return is_cut ? std::nullopt : number;
}

// Makes the place of an amount that was read in a passage one in what that was taken from.
Amount Placed(Amount amount, const Traced& passage) {
  const size_t last = passage.from[amount.at + amount.length - 1];
  amount.at = passage.from[amount.at];
  amount.length = last - amount.at + 1;
  return amount;
}

void ReadMessageFields(const Traced& passage, Facts* facts) {
  const std::string_view text = passage.text;
  for (const Field& field : MessageFields()) {
    std::optional<Amount>& amount = (*facts)[field.quantity];
    if (amount.has_value()) continue;
    const std::string words = WithoutBlanks(field.words);
    const size_t at = text.find(words);
    if (at == std::string_view::npos) continue;
    amount = FieldAt(text, at, words.size(), field);
    if (amount.has_value()) amount = Placed(*amount, passage);
    const std::string_view rest = SkipSeparators(text.substr(at + words.size()));
    facts->has_bad_size |= field.side == Side::kBytes &&
                           rest.find_first_not_of("0123456789") >= kBadSizeDigits &&
                           rest.size() >= kBadSizeDigits;
  }
  for (const NumberField& field : MessageNumbers()) {
    std::optional<double>& number = facts->numbers[static_cast<size_t>(field.number)];
    const std::string words = WithoutBlanks(field.words);
    const size_t at = text.find(words);
    if (number.has_value() || at == std::string_view::npos) continue;
    number = WholeNumber(text.substr(at + words.size()));
  }
  if (text.find(kNoLimit) != std::string_view::npos) {
    (*facts)[Quantity::kLimit].reset();
  }
}

void ReadContextFields(std::string_view text, Facts* facts) {
  for (const Field& field : ContextFields()) {
    std::optional<Amount>& amount = (*facts)[field.quantity];
    const size_t at = text.rfind(field.words);
    if (amount.has_value() || at == std::string_view::npos) continue;
    amount = FieldAt(text, at, field.words.size(), field);
    if (amount.has_value()) amount = amount->WithoutPlace();
  }
  for (const NumberField& field : ContextNumbers()) {
    std::optional<double>& number = facts->numbers[static_cast<size_t>(field.number)];
    // Use the last occurrence that is followed by a number.
    for (size_t at = text.rfind(field.words); !number.has_value() && at != std::string_view::npos;
         at = at == 0 ? std::string_view::npos : text.rfind(field.words, at - 1)) {
      std::string_view rest = SkipSeparators(text.substr(at + field.words.size()));
      if (rest.starts_with('(')) rest.remove_prefix(1);
      number = WholeNumber(rest);
      if (!number.has_value()) continue;
      // A line may have been broken within it.
      const size_t begin = text.size() - rest.size();
      if (WholeNumber(PassageAround(text, begin, 0, kNumberLength).text) != number) number.reset();
    }
  }
}

// Reads "Process 4711 has 14.85 GiB memory in use".
void ReadProcesses(const Traced& passage, Facts* facts) {
  const std::string_view text = passage.text;
  constexpr std::string_view kProcess = "Process";
  for (size_t at = text.find(kProcess);
       at != std::string_view::npos && facts->processes.size() < kMaxProcesses;
       at = text.find(kProcess, at + 1)) {
    std::string_view rest = text.substr(at + kProcess.size());
    const size_t digits = std::min(rest.find_first_not_of("0123456789"), rest.size());
    CardProcess process;
    if (digits == 0 || !absl::SimpleAtoi(ToAbsl(rest.substr(0, digits)), &process.pid)) continue;
    rest.remove_prefix(digits);
    if (!rest.starts_with("has")) continue;
    const std::optional<Amount> bytes = AmountIn(text, rest.substr(3));
    if (!bytes.has_value()) continue;
    process.bytes = Placed(*bytes, passage);
    process.has_bytes = true;
    facts->processes.push_back(std::move(process));
  }
}

// Computes a request of TensorFlow's, "tensorwithshape[64,3,224,224]andtypefloaton".
void ReadShape(const Traced& passage, Facts* facts) {
  const std::string_view text = passage.text;
  constexpr std::string_view kShape = "tensorwithshape[";
  constexpr std::string_view kType = "]andtype";
  const size_t at = text.find(kShape);
  const size_t end = text.find(kType, at);
  if (end == std::string_view::npos) return;
  const size_t begin = at + kShape.size() - 1;
  const std::string_view type = text.substr(end + kType.size());
  const std::string_view shape = text.substr(at + kShape.size(), end - at - kShape.size());
  double elements = 1;
  for (const absl::string_view piece : absl::StrSplit(ToAbsl(shape), ',')) {
    int64_t length = 0;
    if (!absl::SimpleAtoi(piece, &length) || length < 0) return;
    elements *= static_cast<double>(length);
  }
  for (const auto& row : kTypes) {
    if (!type.starts_with(StrCat(row.name, "on")) || !(elements < 0x1p50)) continue;
    (*facts)[Quantity::kTried] =
        Placed({row.bytes * static_cast<int64_t>(elements), 0, begin, end + 1 - begin}, passage);
    facts->shape = StrCat("[", shape, "] of ", row.name);
  }
}

// What must be true of the figures of a message: these two are at most that.
constexpr struct {
  Quantity parts[2];
  Quantity whole;
} kLaws[] = {
    {{Quantity::kPrivatePools, Quantity::kCount}, Quantity::kAllocated},
    {{Quantity::kAllocated, Quantity::kCount}, Quantity::kReserved},
    {{Quantity::kAllocated, Quantity::kUnallocated}, Quantity::kOwnProcess},
    {{Quantity::kOwnProcess, Quantity::kFree}, Quantity::kCapacity},
    {{Quantity::kAllocated, Quantity::kUnallocated}, Quantity::kCapacity},
    {{Quantity::kReserved, Quantity::kCount}, Quantity::kCapacity},
    {{Quantity::kFree, Quantity::kCount}, Quantity::kCapacity},
};

// Drops figures that cannot all be true: a text that was damaged has other figures than its script.
void DropImpossible(Facts* facts) {
  const bool lists_processes =
      (*facts)[Quantity::kOwnProcess].has_value() || !facts->processes.empty();
  for (const auto& law : kLaws) {
    std::optional<Amount>& whole = (*facts)[law.whole];
    if (!whole.has_value()) continue;
    Amount sum;
    for (const Quantity part : law.parts) {
      if (part != Quantity::kCount) sum = sum + (*facts)[part].value_or(Amount());
    }
    // Windows and WSL, where no process is listed, move tensors to main memory.
    const int64_t times = law.whole == Quantity::kCapacity && !lists_processes ? 4 : 1;
    if (sum.bytes - sum.rounding <= times * (whole->bytes + whole->rounding)) continue;
    whole.reset();
    for (const Quantity part : law.parts) {
      if (part != Quantity::kCount) (*facts)[part].reset();
    }
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
  for (const std::string_view words : {"device:GPU:", "GPU", "NPU", "devicecuda:", "ondevice"}) {
    const size_t at = text.find(words);
    if (at == std::string_view::npos) continue;
    const std::string_view rest = text.substr(at + words.size());
    const size_t end = rest.find_first_not_of("0123456789");
    // At the end there may have been more digits, and behind a broken line is a date.
    if (end >= std::min<size_t>(rest.size(), 4) || rest[end] == '-') continue;
    facts->gpu = NumberAfter(text.substr(at, words.size() + end), words);
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

// Returns whether nothing is missing at the end of a setting's value.
bool IsWholeConf(std::string_view conf) {
  const size_t comma = conf.rfind(',') + 1;  // 0 if there is none
  const size_t colon = conf.find(':', comma);
  if (colon == std::string_view::npos) return false;
  const std::string_view value = conf.substr(colon + 1);
  return value == "True" || value == "False" || value == "true" || value == "false" ||
         value == "native" || value == "cudaMallocAsync" || value.ends_with(']') ||
         value.find_first_not_of("0123456789.") == std::string_view::npos;
}

// Returns whether a setting is PyTorch's own hint, wherever lines are broken: "If reserved but
// unallocated memory is large try setting PYTORCH_CUDA_ALLOC_CONF=... to avoid fragmentation".
bool IsHint(const Passage& around) {
  const std::string before = around.text.substr(0, around.at);
  for (const std::string_view words :
       {"trysetting", "butunallocated", "memoryislarge", "trytoset"}) {
    const size_t at = before.rfind(words);
    if (at != std::string::npos && before.find("avoid", at) == std::string::npos) return true;
  }
  return around.text.find("toavoid", around.at) != std::string::npos;
}

// Reads PYTORCH_CUDA_ALLOC_CONF=... and os.environ["PYTORCH_..."] = "...", but not "try setting
// ...".
void ReadConf(std::string_view text, Facts* facts) {
  constexpr std::string_view kConf = "_ALLOC_CONF";
  for (size_t at = text.find(kConf); at != std::string_view::npos; at = text.find(kConf, at + 1)) {
    if (IsHint(PassageAround(text, at, kHintBefore, kHintAfter))) continue;
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
           (absl::ascii_isalnum(rest[length]) ||
            std::string_view("_:,.[]>-").find(rest[length]) != std::string_view::npos)) {
      ++length;
    }
    std::string_view conf = rest.substr(0, length);
    const size_t last = text.size() - rest.size() + length - 1;
    if (length > 0 && absl::ascii_isdigit(text[last]) &&
        PassageAround(text, last, 0, 2).text.find_first_not_of("0123456789") != 1) {
      continue;  // a line may have been broken within the number
    }
    while (!conf.empty() && (conf.back() == '.' || conf.back() == ',' || conf.back() == ':')) {
      conf.remove_suffix(1);
    }
    if (IsWholeConf(conf)) facts->conf = conf;
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
    while (length < name.size() &&
           (absl::ascii_isalnum(name[length]) || name[length] == ' ' || name[length] == '-')) {
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
  const Traced message = MessageText(extract);
  ReadMessageFields(message, &facts);
  ReadShape(message, &facts);
  facts.is_before_2_1 = absl::StrContains(message.text, "alreadyallocated");
  ReadProcesses(message, &facts);
  ReadGpu(message.text, &facts);
  ReadRank(extract, &facts);
  // A server's error quotes the allocator's, before or inside it.
  if (extract.form->kind == FormKind::kServing) {
    const size_t quoted = window.rfind("ried to allocate");
    if (quoted != std::string_view::npos) {
      const Passage figures = PassageAround(window, quoted, 0, kMessageLength);
      ReadMessageFields(figures, &facts);
      if (facts.processes.empty()) ReadProcesses(figures, &facts);
      if (!facts.gpu.has_value()) ReadGpu(figures.text, &facts);
    }
  }
  DropImpossible(&facts);
  facts.window_begin = extract.begin;
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
