// Reads the tables that users add to an error: torch.cuda.memory_summary() and nvidia-smi.
#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "report/message/amount.h"
#include "report/message/facts.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

constexpr size_t kMaxTableLine = 400;
constexpr size_t kMaxTableLines = 400;
constexpr size_t kMaxSmiProcesses = 64;

// Returns at most so many lines of `text` from `begin` on; longer lines are cut.
std::vector<std::string_view> TableLines(std::string_view text, size_t begin) {
  std::vector<std::string_view> lines;
  while (begin < text.size() && lines.size() < kMaxTableLines) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    lines.push_back(text.substr(begin, std::min(end - begin, kMaxTableLine)));
    begin = end + 1;
  }
  return lines;
}

// Returns the cells between '|', from the first one on, because a log may write something before
// it.
std::vector<std::string_view> Cells(std::string_view line) {
  const size_t open = line.find('|');
  if (open == std::string_view::npos) return {};
  std::vector<std::string_view> cells;
  for (const absl::string_view cell : absl::StrSplit(ToAbsl(line.substr(open + 1)), '|')) {
    cells.push_back(Trim(ToStd(cell)));
  }
  return cells;
}

void Set(Quantity quantity, const std::optional<Amount>& amount, Facts* facts) {
  std::optional<Amount>& own = (*facts)[quantity];
  if (!own.has_value() && amount.has_value()) own = amount->WithoutPlace();
}

std::optional<double> CountAfter(std::string_view line, std::string_view words) {
  const size_t at = line.find(words);
  if (at == std::string_view::npos) return std::nullopt;
  return ReadNumber(Trim(line.substr(at + words.size())));
}

// A GPU of nvidia-smi. Its rows come in pairs: name, then memory.
struct SmiCard {
  int64_t index = -1;
  std::string name;
  std::optional<Amount> used;
  std::optional<Amount> total;
};

std::optional<SmiCard> ReadSmiName(const std::vector<std::string_view>& cells) {
  if (cells.empty()) return std::nullopt;
  const std::string_view cell = cells[0];
  const size_t digits = std::min(cell.find_first_not_of("0123456789"), cell.size());
  SmiCard card;
  if (digits == 0 || digits > 3 || cell.size() <= digits || cell[digits] != ' ' ||
      !absl::SimpleAtoi(ToAbsl(cell.substr(0, digits)), &card.index)) {
    return std::nullopt;
  }
  std::string_view name = Trim(cell.substr(digits));
  name = name.substr(0, std::min(name.find("  "), name.size()));
  card.name = name;
  return card;
}

// Reads "  |    0   N/A  N/A      3240      C   python                 3233MiB |".
std::optional<CardProcess> ReadSmiProcess(std::string_view row, int64_t* gpu) {
  std::vector<std::string_view> words;
  for (const absl::string_view word :
       absl::StrSplit(ToAbsl(row), absl::ByAnyChar(" \t"), absl::SkipEmpty())) {
    words.push_back(ToStd(word));
  }
  // The columns are GPU [GI CI] PID TYPE NAME... MEMORY.
  size_t at = 1;
  while (at < words.size() && words[at] == "N/A") ++at;
  CardProcess process;
  if (words.size() < at + 3 || !absl::SimpleAtoi(ToAbsl(words[0]), gpu)) return std::nullopt;
  // GI and CI are numbers with MIG.
  const auto is_type = [](std::string_view word) {
    return word == "C" || word == "G" || word == "C+G" || word == "M+C";
  };
  while (at + 1 < words.size() && !is_type(words[at + 1])) ++at;
  if (at + 2 >= words.size() || !absl::SimpleAtoi(ToAbsl(words[at]), &process.pid)) {
    return std::nullopt;
  }
  const std::optional<Amount> bytes = ReadAmount(words.back());
  process.has_bytes = bytes.has_value();
  if (bytes.has_value()) process.bytes = bytes->WithoutPlace();
  for (size_t i = at + 2; i + 1 < words.size(); ++i) {
    StrAppend(&process.name, process.name.empty() ? "" : " ", words[i]);
  }
  return process;
}

}  // namespace

void ReadMemorySummary(std::string_view text, Facts* facts) {
  const size_t begin = text.rfind("memory summary, device ID");
  if (begin == std::string_view::npos) return;
  facts->has_summary = true;
  constexpr struct {
    std::string_view name;
    Quantity now;
    Quantity peak;
  } kRows[] = {
      {"Allocated memory", Quantity::kAllocated, Quantity::kPeakAllocated},
      {"GPU reserved memory", Quantity::kReserved, Quantity::kPeakReserved},
      {"Non-releasable memory", Quantity::kNonReleasable, Quantity::kCount},
  };
  for (const std::string_view line : TableLines(text, begin)) {
    if (line.find("CUDA OOMs:") != std::string_view::npos) {
      facts->numbers[static_cast<size_t>(Number::kOoms)] = CountAfter(line, "CUDA OOMs:");
      facts->numbers[static_cast<size_t>(Number::kRetries)] =
          CountAfter(line, "cudaMalloc retries:");
    }
    const std::vector<std::string_view> cells = Cells(line);
    if (cells.size() < 3) continue;
    for (const auto& row : kRows) {
      if (cells[0] != row.name) continue;
      Set(row.now, ReadAmount(cells[1]), facts);
      if (row.peak != Quantity::kCount) Set(row.peak, ReadAmount(cells[2]), facts);
    }
  }
  if (!facts->gpu.has_value()) {
    const std::optional<double> id = CountAfter(text.substr(begin, 60), "device ID");
    if (id.has_value() && *id < 1024) facts->gpu = static_cast<int64_t>(*id);
  }
}

void ReadNvidiaSmi(std::string_view text, Facts* facts) {
  const size_t begin = text.rfind("| NVIDIA-SMI ");
  if (begin == std::string_view::npos) return;
  facts->has_smi = true;
  std::vector<SmiCard> cards;
  std::vector<std::pair<int64_t, CardProcess>> processes;
  bool in_processes = false;
  for (const std::string_view line : TableLines(text, begin)) {
    if (line.find("Processes:") != std::string_view::npos) in_processes = true;
    const std::vector<std::string_view> cells = Cells(line);
    if (cells.empty()) continue;
    if (in_processes) {
      int64_t gpu = 0;
      if (processes.size() < kMaxSmiProcesses) {
        if (auto process = ReadSmiProcess(cells[0], &gpu)) {
          processes.emplace_back(gpu, *std::move(process));
        }
      }
      continue;
    }
    if (auto card = ReadSmiName(cells); card.has_value() && cells.size() >= 3) {
      cards.push_back(*std::move(card));
      continue;
    }
    for (const std::string_view cell : cells) {
      const size_t parting = cell.find('/');
      if (cards.empty() || parting == std::string_view::npos) continue;
      const std::optional<Amount> used = ReadAmount(Trim(cell.substr(0, parting)));
      const std::optional<Amount> total = ReadAmount(Trim(cell.substr(parting + 1)));
      if (used.has_value() && total.has_value() && !cards.back().used.has_value()) {
        cards.back().used = used;
        cards.back().total = total;
      }
    }
  }
  const int64_t gpu = facts->gpu.value_or(cards.empty() ? 0 : cards.front().index);
  for (const SmiCard& card : cards) {
    // The script's number 0 may be a GPU with another number if the script sees only some.
    if (card.index != gpu && cards.size() > 1) continue;
    facts->card = card.name;
    Set(Quantity::kCapacity, card.total, facts);
    Set(Quantity::kCardUsed, card.used, facts);
  }
  const bool lists_own = !facts->processes.empty();
  for (auto& [index, process] : processes) {
    if (index != gpu && cards.size() > 1) continue;
    if (!lists_own) {
      facts->processes.push_back(std::move(process));
      continue;
    }
    for (CardProcess& listed : facts->processes) {
      if (listed.pid == process.pid) listed.name = process.name;
    }
  }
}

}  // namespace memreplay
