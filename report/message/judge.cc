#include "report/message/judge.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_format.h"
#include "report/message/amount.h"
#include "report/words/sizes.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

using Explanation = proto::Explanation;

// Unallocated memory, as a share of what PyTorch holds. It was 14 % and more in public threads that
// confirm fragmentation, and at most 5.1 % in seven of eight that do not (docs/oom.md).
constexpr double kFragmentedShare = 0.14;
constexpr double kFullShare = 0.051;
// For shares in between: fragmentation if everything obtainable is this many times the request.
constexpr int64_t kRoomToSpare = 2;
// If tensors hold this much of what PyTorch could have, there is nothing left to arrange.
constexpr double kFullOfTensors = 0.85;
constexpr double kFewTensors = 0.5;
constexpr int64_t kDriverSlack = int64_t{256} << 20;
constexpr double kDriverSlackShare = 0.05;
// A request for less is the first of many.
constexpr double kSmallRequest = 0.05;
// What a process has in addition to PyTorch's memory: a CUDA context and kernels take 0.3 to 0.6
// GiB.
constexpr int64_t kUsualContext = int64_t{600} << 20;
constexpr double kUsualContextShare = 0.10;
constexpr double kOthersShare = 0.25;
constexpr double kFewOthersShare = 0.05;
constexpr double kWorthSaying = 0.01;
constexpr double kHiddenShare = 0.10;
// The largest GPU when this was written: 288 GiB.
constexpr int64_t kLargestCard = int64_t{288} << 30;
constexpr int64_t kBlockLimit = int64_t{4} << 30;
constexpr int64_t kContextTokens = 16;  // vLLM's block
constexpr std::string_view kRelaxedLimits =
    "Intel's driver refuses single blocks of 4 GiB and more unless relaxed limits are on";

std::string Percent(double share) { return absl::StrFormat("%.1f %%", 100 * share); }
double Share(const Amount& part, const Amount& whole) {
  return whole.bytes > 0 ? static_cast<double>(part.bytes) / static_cast<double>(whole.bytes) : 0;
}
std::string Within(const Amount& amount) {
  return amount.rounding > 0 ? StrCat(" (to within ", FormatSize(amount.rounding), ")") : "";
}

// Returns an amount between two texts; "" if it is unknown.
std::string Given(const std::optional<Amount>& amount, std::string_view before,
                  std::string_view after = "") {
  return amount.has_value() ? StrCat(before, Size(*amount), after) : "";
}

// The pieces are a sentence without a full stop, here and in Say().
template <typename... Pieces>
void AddEvidence(Judgement* judgement, const Amount& amount, const Pieces&... pieces) {
  Explanation::Evidence& evidence = judgement->evidence.emplace_back();
  evidence.set_sentence(StrCat(pieces...));
  evidence.set_bytes(amount.bytes);
  evidence.set_rounding_bytes(amount.rounding);
}

void AddMissing(Judgement* judgement, const Amount& wanted, const Amount& room) {
  const Amount missing = wanted - room;
  AddEvidence(judgement, missing, Size(wanted), " - ", Size(room), " = ", FormatSize(missing.bytes),
              Within(missing), " too little");
}

// Returns "GPU 0" or "the card".
std::string CardName(const Facts& facts) {
  const std::string_view what = facts[Circumstance::kNpu] ? "NPU " : "GPU ";
  return facts.gpu.has_value() ? StrCat(what, *facts.gpu) : "the GPU";
}

Amount Positive(Amount amount) { return {std::max<int64_t>(amount.bytes, 0), amount.rounding}; }

// Returns the largest request that could be served if everything that is not allocated and not
// another process's were free. Neither packing nor another process changes it.
std::optional<Amount> MostConceivable(const Facts& facts, const Sums& sums) {
  const auto& capacity = facts[Quantity::kCapacity];
  if (!capacity.has_value() || !sums.tensors.has_value()) return std::nullopt;
  return Positive(*capacity - *sums.tensors - sums.others);
}

void AddSums(const Facts& facts, const Sums& sums, Judgement* judgement) {
  const auto& tried = facts[Quantity::kTried];
  if (sums.obtainable.has_value() && sums.grantable.has_value() && sums.unallocated.has_value()) {
    AddEvidence(judgement, *sums.obtainable, Size(*sums.grantable),
                facts[Quantity::kLimit].has_value() ? " that the limit leaves" : " free on the GPU",
                " + ", Size(*sums.unallocated),
                " held by PyTorch in no tensor = ", Size(*sums.obtainable),
                Within(*sums.obtainable), Given(tried, ", and ", " was requested"));
  }
  if (sums.unallocated.has_value() && sums.reserved.has_value() && sums.reserved->bytes > 0) {
    AddEvidence(
        judgement, *sums.unallocated, Size(*sums.unallocated), " of the ", Size(*sums.reserved),
        " that PyTorch holds is in no tensor: ", Percent(Share(*sums.unallocated, *sums.reserved)));
  }
  if (const auto& pools = facts[Quantity::kPrivatePools]; pools.has_value() && pools->bytes > 0) {
    AddEvidence(judgement, *pools, Size(*pools),
                " of what is allocated lies free in private pools (CUDA graphs), which "
                "other requests cannot use; fewer or smaller graphs leave less there");
  }
  if (sums.own.has_value() && sums.outside.has_value()) {
    AddEvidence(judgement, *sums.outside, "this process has ", Size(*sums.own),
                ", PyTorch's allocator ", Size(*sums.own - *sums.outside), " of it; ",
                Size(*sums.outside), Within(*sums.outside),
                " is the CUDA context and what libraries take");
  }
  if (sums.elsewhere.has_value() && !facts.knows_outside &&
      facts[Quantity::kCapacity].has_value() &&
      Share(*sums.elsewhere, *facts[Quantity::kCapacity]) > kWorthSaying) {
    AddEvidence(judgement, *sums.elsewhere, Size(*sums.elsewhere), Within(*sums.elsewhere),
                " of the GPU is in no line of the text: ",
                sums.own.has_value() ? "processes that cannot be seen from here"
                                     : "this process's CUDA context, and other processes");
  }
  if (const auto& peak = facts[Quantity::kPeakAllocated]; peak.has_value()) {
    AddEvidence(judgement, *peak, "tensors took ", Size(*peak), " at the peak",
                Given(facts[Quantity::kPeakReserved], ", of ", " that PyTorch then held"));
  }
  if (const auto& retries = facts[Number::kRetries]; retries.has_value() && *retries > 0) {
    AddEvidence(judgement, Amount(), "PyTorch released its cache and tried again ",
                static_cast<int64_t>(*retries), *retries == 1 ? " time" : " times");
  }
  if (const auto& kept = facts[Quantity::kNonReleasable]; kept.has_value()) {
    AddEvidence(
        judgement, *kept, Size(*kept),
        " of the free memory shares segments with live tensors, so that it cannot be released");
  }
}

std::string ListOthers(const Facts& facts, const Sums& sums) {
  std::vector<const CardProcess*> others;
  for (const CardProcess& process : facts.processes) {
    if (process.pid != sums.own_pid && process.has_bytes) others.push_back(&process);
  }
  absl::c_sort(others, [](const CardProcess* a, const CardProcess* b) {
    return a->bytes.bytes > b->bytes.bytes;
  });
  std::string list;
  for (size_t i = 0; i < others.size() && i < 3; ++i) {
    StrAppend(&list, i > 0 ? ", " : "", "process ", others[i]->pid, " with ",
              Size(others[i]->bytes));
  }
  if (others.size() > 3) StrAppend(&list, " and ", others.size() - 3, " more");
  return list;
}

template <typename... Pieces>
void Say(Judgement* judgement, Explanation::Verdict verdict, const Pieces&... pieces) {
  judgement->verdict = verdict;
  judgement->happened = StrCat(pieces...);
}

std::string Asked(const Facts& facts) {
  const auto& tried = facts[Quantity::kTried];
  return tried.has_value() ? Size(*tried) : "memory";
}

// Judges whether other processes hold what was missing.
bool JudgeOthers(const Facts& facts, const Sums& sums, bool is_main, Judgement* judgement) {
  const auto& capacity = facts[Quantity::kCapacity];
  const auto& tried = facts[Quantity::kTried];
  if (!capacity.has_value()) return false;
  const int64_t own = sums.own.has_value()        ? sums.own->bytes
                      : sums.reserved.has_value() ? sums.reserved->bytes
                                                  : 0;
  // Memory elsewhere belongs to other processes if it is more than a display takes, and, without a
  // line for this process, more than its own context.
  int64_t hidden = sums.elsewhere.has_value() ? sums.elsewhere->bytes : 0;
  const bool knows_own = sums.own.has_value();
  const auto least = static_cast<int64_t>((knows_own ? kHiddenShare : kOthersShare) *
                                          static_cast<double>(capacity->bytes));
  if (hidden < std::max(least, knows_own ? 2 * kUsualContext : 3 * kUsualContext)) hidden = 0;
  const int64_t others = sums.others.bytes + hidden;
  const double share = static_cast<double>(others) / static_cast<double>(capacity->bytes);
  const bool enough = !tried.has_value() || !sums.obtainable.has_value() ||
                      others + sums.obtainable->bytes >= tried->bytes;
  if (!enough || share < (is_main ? kOthersShare : kFewOthersShare)) return false;
  if (is_main && others < own) return false;
  std::string list = ListOthers(facts, sums);
  std::string what = list.empty() ? StrCat("about ", FormatSize(hidden), " of ", CardName(facts),
                                           " (", Percent(share),
                                           ") is held outside this process's PyTorch, most likely "
                                           "by processes that the text does not list")
                                  : StrCat("other processes hold ", FormatSize(others), " of ",
                                           CardName(facts), " (", Percent(share), "): ", list);
  Say(judgement, Explanation::other_process, Asked(facts), " was refused while ", what);
  return true;
}

void JudgeTooLarge(const Facts& facts, Judgement* judgement) {
  const Amount tried = *facts[Quantity::kTried];
  const auto& capacity = facts[Quantity::kCapacity];
  if (capacity.has_value()) {
    const Amount over = tried - *capacity;
    Say(judgement, Explanation::too_large, "one request of ", Size(tried), " is more than ",
        CardName(facts), " has in all (", Size(*capacity), ")");
    AddEvidence(judgement, over, Size(tried), " - ", Size(*capacity), " = ", Size(over),
                Within(over), " beyond an empty GPU");
  } else {
    Say(judgement, Explanation::too_large, "one request of ", Size(tried),
        " is more than any GPU has");
  }
}

// Returns how much more than the request must be free for a refusal to have another reason than too
// little memory. Drivers keep a few MiB, and a segment may be larger than the request.
int64_t DriverSlack(const Facts& facts) {
  const auto& capacity = facts[Quantity::kCapacity];
  if (!capacity.has_value()) return kDriverSlack;
  return std::max(int64_t{64} << 20,
                  static_cast<int64_t>(kDriverSlackShare * static_cast<double>(capacity->bytes)));
}

// Judges whether the driver had more free memory than was requested, by more than `slack`.
bool JudgeRefused(const Facts& facts, const Sums& sums, int64_t slack, Judgement* judgement) {
  const auto& tried = facts[Quantity::kTried];
  if (!tried.has_value()) return false;
  if (facts.form->kind == FormKind::kBlockLimit) {
    Say(judgement, Explanation::refused_with_free, "one block of ", Size(*tried),
        " was requested, and this driver refuses any single block above 4 GiB, however much "
        "is free");
    return true;
  }
  const bool is_block = facts[Circumstance::kXpu] && tried->bytes >= kBlockLimit;
  const auto& capacity = facts[Quantity::kCapacity];
  if (is_block && !facts[Quantity::kFree].has_value() && capacity.has_value() &&
      sums.reserved.value_or(Amount()).bytes + tried->bytes <= capacity->bytes) {
    Say(judgement, Explanation::refused_with_free, "the driver refused one block of ", Size(*tried),
        " on a GPU of ", Size(*capacity), Given(sums.reserved, ", of which PyTorch holds "), ": ",
        kRelaxedLimits);
    return true;
  }
  if (!sums.grantable.has_value() || facts[Quantity::kLimit].has_value()) return false;
  const int64_t over = sums.grantable->bytes - tried->bytes;
  if (over < slack) return false;
  std::string why = "the allocator is not the cause";
  if (is_block) {
    why = kRelaxedLimits;
  } else if (facts[Circumstance::kWsl]) {
    why = "under WSL the driver counts memory that a process cannot get";
  } else if (facts[Circumstance::kWindows]) {
    why = "Windows charges GPU memory to the page file too, and that, or main memory, is exhausted";
  } else if (facts[Circumstance::kExpandableIsOn]) {
    why =
        "with expandable segments each 2 MiB page is a mapping, and a process may have only "
        "vm.max_map_count of them";
  }
  Say(judgement, Explanation::refused_with_free, "the driver refused ", Asked(facts),
      " although it counts ", Size(*sums.grantable), " free on ", CardName(facts), "; ", why);
  AddEvidence(judgement, *sums.grantable - *tried, Size(*sums.grantable), " free - ", Size(*tried),
              " requested = ", FormatSize(over), " to spare");
  return true;
}

bool JudgeLimit(const Facts& facts, const Sums& sums, Judgement* judgement) {
  const auto& limit = facts[Quantity::kLimit];
  if (!limit.has_value()) return false;
  const auto& tried = facts[Quantity::kTried];
  if (facts.form->kind == FormKind::kMps) {
    const auto& allocated = facts[Quantity::kAllocated];
    const auto& other = facts[Quantity::kOtherAllocations];
    if (allocated.has_value() && tried.has_value()) {
      const Amount held = *allocated + other.value_or(Amount());
      Say(judgement, Explanation::limit, Asked(facts), " more would pass the ", Size(*limit),
          " that PyTorch lets itself take of this Mac's memory; ", Size(held), " is taken, ",
          Size(*allocated), " of it by tensors");
      AddEvidence(judgement, held + *tried, Size(*allocated), " MPS + ",
                  Size(other.value_or(Amount())), " other + ", Size(*tried),
                  " requested = ", Size(held + *tried), Within(held + *tried), " against ",
                  Size(*limit), " allowed");
      return true;
    }
    Say(judgement, Explanation::limit, "the ", Size(*limit),
        " that PyTorch lets itself take of this Mac's memory are used up");
    return true;
  }
  const auto& free = facts[Quantity::kFree];
  const std::optional<Amount> held =
      sums.reserved.has_value() ? sums.reserved : facts[Quantity::kAllocated];
  const int64_t left = std::max<int64_t>(0, limit->bytes - (held.has_value() ? held->bytes : 0));
  // The GPU itself was fuller than the limit.
  if (free.has_value() && free->bytes <= left) return false;
  if (tried.has_value() && left >= tried->bytes + limit->rounding) return false;
  const auto& capacity = facts[Quantity::kCapacity];
  Say(judgement, Explanation::limit, Asked(facts),
      " was refused by a limit, not by the GPU: PyTorch may hold ", Size(*limit),
      Given(capacity, " of "), Given(held, " and holds "), Given(free, "; the GPU has ", " free"));
  AddEvidence(judgement, Amount{left, limit->rounding}, Size(*limit), " allowed",
              held.has_value() ? StrCat(" - ", Size(*held), " held = ", FormatSize(left)) : "",
              Given(tried, " left, and ", " was requested"));
  return true;
}

bool JudgeFragmentation(const Facts& facts, const Sums& sums, Judgement* judgement) {
  const auto& tried = facts[Quantity::kTried];
  if (!sums.unallocated.has_value() || !sums.reserved.has_value()) return false;
  const double share = Share(*sums.unallocated, *sums.reserved);
  if (share < kFullShare) return false;
  if (tried.has_value()) {
    if (!sums.obtainable.has_value() || sums.obtainable->bytes < tried->bytes) return false;
    if (share < kFragmentedShare && sums.obtainable->bytes < kRoomToSpare * tried->bytes)
      return false;
  } else if (share < kFragmentedShare || facts[Number::kOoms].value_or(1) == 0) {
    return false;
  }
  Say(judgement, Explanation::fragmentation, Asked(facts), " was refused while ",
      Size(*sums.unallocated), " (", Percent(share),
      " of what PyTorch holds) lay in no tensor: there was room, in pieces");
  return true;
}

bool JudgeOutside(const Facts& facts, const Sums& sums, Judgement* judgement) {
  const auto& capacity = facts[Quantity::kCapacity];
  const auto& tried = facts[Quantity::kTried];
  if (!sums.outside.has_value() || !capacity.has_value()) return false;
  const int64_t usual = std::max<int64_t>(
      kUsualContext,
      static_cast<int64_t>(kUsualContextShare * static_cast<double>(capacity->bytes)));
  if (sums.outside->bytes < usual) return false;
  // Everything but a context would have to be enough for the request.
  if (tried.has_value() && sums.obtainable.has_value() &&
      sums.outside->bytes - kUsualContext / 2 + sums.obtainable->bytes < tried->bytes) {
    return false;
  }
  Say(judgement, Explanation::outside, Asked(facts), " was refused while this process holds ",
      Size(*sums.outside), " of ", CardName(facts), " (", Percent(Share(*sums.outside, *capacity)),
      ") that is not PyTorch's allocator's: CUDA context, NCCL, other libraries");
  return true;
}

void JudgeFullOrShort(const Facts& facts, const Sums& sums, Judgement* judgement) {
  const auto& tried = facts[Quantity::kTried];
  const auto& allocated = sums.tensors;
  const auto& capacity = facts[Quantity::kCapacity];
  std::optional<Amount> usable = capacity;
  if (usable.has_value()) usable = Positive(*usable - sums.others);
  if (!usable.has_value() && facts[Quantity::kFree].has_value() && sums.reserved.has_value()) {
    usable = *sums.reserved + *facts[Quantity::kFree];
  }
  const std::optional<Amount> obtainable =
      sums.obtainable.has_value() ? sums.obtainable : MostConceivable(facts, sums);
  const bool lacks =
      tried.has_value() && obtainable.has_value() && obtainable->bytes < tried->bytes;
  const bool is_full = allocated.has_value() && usable.has_value() && usable->bytes > 0 &&
                       Share(*allocated, *usable) >= kFullOfTensors;
  if (allocated.has_value() && capacity.has_value() && allocated->bytes > capacity->bytes) {
    const Amount over = *allocated - *capacity;
    AddEvidence(judgement, over, "tensors take ", Size(over),
                " more than the GPU has: that part already lies in system memory (the "
                "fallback of NVIDIA's driver for Windows and WSL), which is slow");
  }
  std::string least;
  if (sums.unallocated.has_value() && sums.unallocated->bytes == 0) {
    least = "; no setting gives anything";
  } else if (sums.unallocated.has_value()) {
    least = StrCat("; no setting gives more than ", Size(*sums.unallocated),
                   usable.has_value() && usable->bytes > 0
                       ? StrCat(" (", Percent(Share(*sums.unallocated, *usable)), ")")
                       : "");
  }
  if (tried.has_value() && sums.obtainable.has_value() && !lacks) {
    AddEvidence(judgement, *sums.obtainable - *tried,
                "a setting might let this one request through, with ",
                Size(*sums.obtainable - *tried), " left; the script will request more");
  }
  // A small request on a full card is only the first of many.
  if (is_full && !(lacks && tried->bytes > usable->bytes / 4)) {
    Say(judgement, Explanation::full, "tensors hold ", Size(*allocated), " of ", CardName(facts),
        "'s ", Size(*usable), sums.others.bytes > 0 ? " that other processes leave" : "", ", ",
        tried.has_value() ? StrCat("so that ", Size(*tried), " more did not fit") : "nearly all",
        least);
    return;
  }
  if (lacks) {
    const Amount missing = *tried - *obtainable;
    Say(judgement, Explanation::shortage, Size(*tried),
        " was requested, and even in one piece there was only ",
        sums.obtainable.has_value() ? "" : "at most ", Size(*obtainable), " on ", CardName(facts),
        ": ", FormatSize(missing.bytes), " too little",
        usable.has_value() && Share(*tried, *usable) < kSmallRequest
            ? ", and the program would have requested more"
            : "");
    AddMissing(judgement, *tried, *obtainable);
    return;
  }
  // Where nothing else is to blame, any room is too much.
  if (allocated.has_value() && usable.has_value() && Share(*allocated, *usable) < kFewTensors &&
      JudgeRefused(facts, sums, 0, judgement)) {
    return;
  }
  if (sums.obtainable.has_value() && allocated.has_value()) {
    Say(judgement, Explanation::full, CardName(facts), " is in use but for ", Size(*sums.grantable),
        ": ", Size(*allocated), " in tensors",
        sums.elsewhere.has_value() && usable.has_value() &&
                Share(*sums.elsewhere, *usable) > kHiddenShare
            ? StrCat(" and ", Size(*sums.elsewhere), " outside PyTorch")
            : "",
        Given(usable, ", of "), least);
    return;
  }
  Say(judgement, Explanation::no_numbers, Asked(facts), " was refused",
      Given(capacity, " on a GPU of "), ", and the text ends before it says what held the rest");
}

// Judges boards on which the GPU shares the host's memory.
bool JudgeUnified(const Facts& facts, Judgement* judgement) {
  const bool is_nvidia = facts[Circumstance::kGb10];
  if (!is_nvidia && !facts[Circumstance::kStrixHalo]) return false;
  const auto& free = facts[Quantity::kFree];
  Say(judgement, Explanation::unified, Asked(facts),
      " was refused on a GPU that shares the host's memory", Given(free, ", with ", " free"), ": ",
      is_nvidia ? "files in the page cache and other programs count against it"
                : "only a part of the host's memory is set aside for the GPU");
  return true;
}

int64_t FloorToHundredth(double value) {
  return static_cast<int64_t>(std::floor(value * 100 + 1e-9));
}

std::string Ratio(double value) { return absl::StrFormat("%.2f", value); }

void AddServerParts(const Facts& facts, Judgement* judgement) {
  for (const Quantity part : {Quantity::kWeights, Quantity::kActivations, Quantity::kNonTorch,
                              Quantity::kCache, Quantity::kGraphs}) {
    if (const auto& amount = facts[part]; amount.has_value()) {
      AddEvidence(judgement, *amount, QuantityWords(part), ": ", Size(*amount), Within(*amount));
    }
  }
}

// Judges a server that ran out while it worked or prepared to.
void JudgeServerWork(const Facts& facts, const Sums& sums, Judgement* judgement) {
  const std::string_view name = facts.form->name;
  const auto& capacity = facts[Quantity::kCapacity];
  const auto& utilization = facts[Number::kUtilization];
  const auto& tried = facts[Quantity::kTried];
  const std::string_view when =
      name.find("sampler") != std::string_view::npos   ? " while it warmed up its sampler"
      : name.find("graphs") != std::string_view::npos  ? " while it captured CUDA graphs"
      : name.find("prefill") != std::string_view::npos ? " in a prefill"
      : name.find("decode") != std::string_view::npos  ? " while decoding"
      : facts[FrameHint::kLoading]                     ? " while it loaded the weights"
                                                       : "";
  std::string short_by;
  if (tried.has_value() && sums.obtainable.has_value()) {
    const Amount missing = *tried - *sums.obtainable;
    if (missing.bytes > 0) {
      short_by = StrCat(": ", Size(*tried), " was requested, ", FormatSize(missing.bytes),
                        " more than there was");
    }
    if (utilization.has_value() && capacity.has_value() && capacity->bytes > 0) {
      // This is what was missing, and a hundredth to spare.
      const double lower = *utilization -
                           static_cast<double>(std::max<int64_t>(missing.bytes, 0)) /
                               static_cast<double>(capacity->bytes) -
                           0.01;
      if (lower > 0) {
        judgement->utilization = static_cast<double>(FloorToHundredth(lower)) / 100;
      }
    }
  }
  Say(judgement, Explanation::serving, "the server's own share of ", CardName(facts),
      " left too little for its work", when, short_by);
  AddSums(facts, sums, judgement);
}

void JudgeServing(const Facts& facts, const Sums& sums, Judgement* judgement) {
  const auto& capacity = facts[Quantity::kCapacity];
  const auto& free = facts[Quantity::kFree];
  const auto& desired = facts[Quantity::kDesired];
  const auto& utilization = facts[Number::kUtilization];
  const auto& length = facts[Number::kMaxLength];
  const auto& tokens = facts[Number::kCacheTokens];
  const bool is_sglang = facts.form->name.starts_with("SGLang") ||
                         (facts[Circumstance::kSglang] && !facts[Circumstance::kVllm]);
  const std::string_view setting = is_sglang ? "mem-fraction-static" : "gpu-memory-utilization";
  judgement->verdict = Explanation::serving;
  const std::string_view name = facts.form->name;
  if (desired.has_value() && free.has_value() && capacity.has_value()) {
    const Amount taken = Positive(*capacity - *free);
    judgement->utilization = static_cast<double>(FloorToHundredth(Share(*free, *capacity))) / 100;
    Say(judgement, Explanation::serving, "the server needs ", Size(*desired),
        utilization.has_value() ? StrCat(" (", Ratio(*utilization), " of the GPU)") : "",
        " and only ", Size(*free), " of ", Size(*capacity), " is free at its start: ", Size(taken),
        " is in use by other processes",
        facts[Circumstance::kGb10] ? " and, on this board, by the page cache" : "");
    AddMissing(judgement, *desired, *free);
    AddEvidence(judgement, *free, Size(*free), " / ", Size(*capacity), " = ",
                Percent(Share(*free, *capacity)), ": ", setting, " ",
                Ratio(*judgement->utilization), " would start");
  } else if (tokens.has_value() && length.has_value()) {
    judgement->length = static_cast<int64_t>(*tokens);
    Say(judgement, Explanation::serving, "one request of ",
        FormatCount(static_cast<int64_t>(*length)),
        " tokens does not fit into the KV cache: it has room for ",
        FormatCount(static_cast<int64_t>(*tokens)));
  } else if (const auto& needed = facts[Quantity::kCacheNeeded];
             needed.has_value() && facts[Quantity::kCache].has_value()) {
    const Amount cache = *facts[Quantity::kCache];
    if (facts[Number::kFittingLength].has_value()) {
      judgement->length = static_cast<int64_t>(*facts[Number::kFittingLength]);
    } else if (length.has_value() && needed->bytes > 0) {
      judgement->length =
          static_cast<int64_t>(*length * Share(cache, *needed)) / kContextTokens * kContextTokens;
    }
    Say(judgement, Explanation::serving, "one request",
        length.has_value() ? StrCat(" of ", FormatCount(static_cast<int64_t>(*length)), " tokens")
                           : "",
        " needs ", Size(*needed), " of KV cache, and ", Size(cache), " is left for it");
    AddMissing(judgement, *needed, cache);
  } else if (facts.form->anchor == "No available memory for the cache blocks") {
    Say(judgement, Explanation::serving, "weights and activations take all that the server may use",
        utilization.has_value() ? StrCat(" (", setting, " ", Ratio(*utilization), ")") : "",
        ": nothing is left for the KV cache");
  } else if (name.starts_with("vLLM: memory changed")) {
    Say(judgement, Explanation::serving,
        "another process took or released memory of the GPU while the server measured it");
  } else if (name.starts_with("SGLang: no memory")) {
    Say(judgement, Explanation::serving,
        "the weights leave nothing of mem-fraction-static for the KV cache");
  } else {
    JudgeServerWork(facts, sums, judgement);
  }
  AddServerParts(facts, judgement);
}

void JudgeDevice(const Facts& facts, const Sums& sums, Judgement* judgement) {
  const auto& tried = facts[Quantity::kTried];
  const auto& capacity = facts[Quantity::kCapacity];
  judgement->settings_give = sums.unallocated;
  if (facts.form->kind == FormKind::kAsync) judgement->settings_give.reset();
  const bool is_unified = facts[Circumstance::kGb10] || facts[Circumstance::kStrixHalo];
  const bool is_card =
      facts.form->kind == FormKind::kDevice || facts.form->kind == FormKind::kAsync;
  if (is_card && !is_unified && tried.has_value() &&
      tried->bytes > (capacity.has_value() ? capacity->bytes : kLargestCard)) {
    JudgeTooLarge(facts, judgement);
  } else if (JudgeLimit(facts, sums, judgement) ||
             (is_unified &&
              (JudgeFragmentation(facts, sums, judgement) || JudgeUnified(facts, judgement))) ||
             // PyTorch asks the driver before it gives up, so a lack of free memory was not the
             // reason.
             JudgeRefused(facts, sums, DriverSlack(facts), judgement) ||
             // Others hold most of the GPU, regardless of fragmentation here.
             JudgeOthers(facts, sums, true, judgement) ||
             JudgeFragmentation(facts, sums, judgement) ||
             JudgeOthers(facts, sums, false, judgement)) {
    // One of these has set the verdict.
  } else if (facts[Circumstance::kVllm] || facts[Circumstance::kSglang]) {
    JudgeServing(facts, sums, judgement);
    return;
  } else if (!JudgeOutside(facts, sums, judgement)) {
    JudgeFullOrShort(facts, sums, judgement);
  }
  AddSums(facts, sums, judgement);
}

void JudgeTable(const Facts& facts, const Sums& sums, Judgement* judgement) {
  if (facts.has_summary) {
    // The table, printed after the exception, shows what was left, but the peak is what counts.
    Sums at_peak = sums;
    if (sums.reserved.has_value() && facts[Quantity::kPeakAllocated].has_value()) {
      at_peak.unallocated = Positive(*sums.reserved - *facts[Quantity::kPeakAllocated]);
    }
    if (JudgeFragmentation(facts, at_peak, judgement)) {
      const auto& peak = facts[Quantity::kPeakAllocated];  // a damaged table may lack it
      judgement->happened =
          StrCat("PyTorch holds ", Size(*at_peak.reserved),
                 peak.has_value() ? StrCat(" and never had more than ", Size(*peak), " in tensors")
                                  : StrCat(", ", Size(*at_peak.unallocated), " of it in no tensor"),
                 ": ", Percent(Share(*at_peak.unallocated, *at_peak.reserved)), " lies in pieces");
      judgement->settings_give = at_peak.unallocated;
    } else if (facts[Number::kOoms].value_or(0) > 0 && sums.reserved.has_value() &&
               facts[Quantity::kPeakAllocated].has_value()) {
      Say(judgement, Explanation::full, "tensors took ", Size(*facts[Quantity::kPeakAllocated]),
          " of the ", Size(*sums.reserved),
          " that PyTorch holds: no setting gives more than the rest, ", Size(*at_peak.unallocated));
      judgement->settings_give = at_peak.unallocated;
    } else {
      Say(judgement, Explanation::no_numbers,
          facts[Number::kOoms].value_or(1) == 0
              ? "in this table memory has not run out yet (CUDA OOMs: 0)"
              : "the table does not say what was requested in vain");
    }
    AddSums(facts, sums, judgement);
    return;
  }
  const auto& used = facts[Quantity::kCardUsed];
  const auto& capacity = facts[Quantity::kCapacity];
  if (used.has_value() && capacity.has_value() && Share(*used, *capacity) >= kFullOfTensors) {
    const std::string list = ListOthers(facts, sums);
    Say(judgement, Explanation::other_process, Size(*used), " of ", CardName(facts), "'s ",
        Size(*capacity), " is in use",
        list.empty() ? ", and the table does not say by whom" : StrCat(": ", list));
    AddEvidence(judgement, *capacity - *used, Size(*capacity), " - ", Size(*used), " = ",
                Size(*capacity - *used), " free");
    return;
  }
  Say(judgement, Explanation::no_numbers,
      used.has_value() && capacity.has_value()
          ? StrCat("the table shows ", Size(*used), " of ", Size(*capacity),
                   " in use, which is no failure; the error's own text is missing")
          : "the table has no memory figures that can be read");
}

void JudgeLibrary(const Facts& facts, Judgement* judgement) {
  std::string_view who = facts.form->name;
  who = who.substr(0, who.find(": unhandled"));
  const auto& tried = facts[Quantity::kTried];
  if (who == "vLLM: cumem_allocator") {
    Say(judgement, Explanation::library,
        "vLLM's own allocator (cumem) found too little free to map its memory again: what else "
        "runs on the GPU holds it, PyTorch's cache included");
  } else if (facts.form->strength < 4) {
    Say(judgement, Explanation::library, who,
        " failed in a call of CUDA, often because memory ran out; its own line, \"NCCL "
        "WARN\", says which");
  } else {
    Say(judgement, Explanation::library, who, " got no memory",
        tried.has_value() ? StrCat(" (", FormatSize(tried->bytes), ")") : "",
        ": the GPU is full, and PyTorch's cache counts as full to other libraries");
  }
}

void JudgeHost(const Facts& facts, Judgement* judgement) {
  const auto& tried = facts[Quantity::kTried];
  const auto& resident = facts[Quantity::kResident];
  const auto& used = facts[Quantity::kHostUsed];
  const auto& total = facts[Quantity::kHostTotal];
  if (facts.form->kind == FormKind::kKilled) {
    Say(judgement, Explanation::host,
        resident.has_value()
            ? StrCat("the kernel ended the process when the host's memory ran out; it had ",
                     Size(*resident))
        : facts.form->strength >= 3
            ? StrCat("the system ended the process because the host's memory ran out (",
                     facts.form->name, ")")
            : StrCat("the process was killed (", facts.form->name,
                     "), which is nearly always the host's memory running out",
                     facts[FrameHint::kLoading] || facts[Circumstance::kLoadingWeights]
                         ? ", here while weights were loaded"
                         : ""));
    return;
  }
  if (used.has_value() && total.has_value()) {
    Say(judgement, Explanation::host, Size(*used), " of the node's ", Size(*total),
        " of main memory was in use, so that Ray ended a worker");
    return;
  }
  Say(judgement, Explanation::host, "the host's memory, not the GPU's, ran out",
      Given(tried, ": one request of "));
}

void JudgeBadSize(Judgement* judgement) {
  Say(judgement, Explanation::not_memory,
      "a size was requested that no memory has and no program means: the size itself is wrong, "
      "corrupted by an earlier failure or computed from a negative number");
}

// Judges a program with an allocator of its own.
void JudgeOther(const Facts& facts, Judgement* judgement) {
  if (facts.has_bad_size) {
    JudgeBadSize(judgement);
    return;
  }
  const auto& tried = facts[Quantity::kTried];
  const auto& free = facts[Quantity::kFree];
  const auto& room = free.has_value() ? free : facts[Quantity::kCapacity];
  if (tried.has_value() && room.has_value() && tried->bytes > room->bytes) {
    const Amount missing = *tried - *room;
    Say(judgement, Explanation::shortage, facts.form->name, " needed ", Size(*tried),
        " of the device, which has ", Size(*room), free.has_value() ? " free" : "", ": ",
        FormatSize(missing.bytes), " too little");
    AddMissing(judgement, *tried, *room);
    return;
  }
  Say(judgement, Explanation::no_numbers, facts.form->name, " ran out of the GPU's memory",
      Given(tried, " (", " was requested)"),
      "; its allocator is not PyTorch's, and the text does not say what held the rest");
}

std::optional<Amount> OptionalSum(const std::optional<Amount>& a, const std::optional<Amount>& b) {
  if (!a.has_value() || !b.has_value()) return std::nullopt;
  return *a + *b;
}

}  // namespace

Sums Add(const Facts& facts) {
  Sums sums;
  const auto& allocated = facts[Quantity::kAllocated];
  sums.tensors = allocated;
  if (const auto& pools = facts[Quantity::kPrivatePools];
      pools.has_value() && allocated.has_value()) {
    sums.tensors = Positive(*allocated - *pools);
  }
  sums.unallocated = facts[Quantity::kUnallocated];
  sums.reserved = facts[Quantity::kReserved];
  if (!sums.unallocated.has_value() && sums.reserved.has_value() && allocated.has_value()) {
    sums.unallocated = Positive(*sums.reserved - *allocated);
  }
  if (!sums.reserved.has_value()) sums.reserved = OptionalSum(allocated, sums.unallocated);
  sums.grantable = facts[Quantity::kFree];
  if (const auto& limit = facts[Quantity::kLimit]; limit.has_value() && sums.reserved.has_value()) {
    const Amount left = Positive(*limit - *sums.reserved);
    if (!sums.grantable.has_value() || left.bytes < sums.grantable->bytes) sums.grantable = left;
  }
  sums.obtainable = OptionalSum(sums.grantable, sums.unallocated);
  // This process is the one with its own line, or the one nearest above what PyTorch holds.
  sums.own = facts[Quantity::kOwnProcess];
  if (!sums.own.has_value() && sums.reserved.has_value()) {
    const CardProcess* nearest = nullptr;
    for (const CardProcess& process : facts.processes) {
      if (!process.has_bytes ||
          process.bytes.bytes + process.bytes.rounding + sums.reserved->rounding <
              sums.reserved->bytes) {
        continue;
      }
      if (nearest == nullptr || process.bytes.bytes < nearest->bytes.bytes) nearest = &process;
    }
    if (nearest != nullptr) {
      sums.own = nearest->bytes;
      sums.own_pid = nearest->pid;
    }
  }
  for (const CardProcess& process : facts.processes) {
    if (process.has_bytes && process.pid != sums.own_pid) sums.others = sums.others + process.bytes;
  }
  if (sums.own.has_value() && sums.reserved.has_value()) {
    sums.outside = Positive(*sums.own - *sums.reserved);
  }
  const auto& capacity = facts[Quantity::kCapacity];
  const auto& free = facts[Quantity::kFree];
  const std::optional<Amount> known = sums.own.has_value() ? sums.own : sums.reserved;
  if (capacity.has_value() && free.has_value() && known.has_value()) {
    sums.elsewhere = Positive(*capacity - *free - *known - sums.others);
  }
  return sums;
}

Judgement Judge(const Facts& facts, const Sums& sums) {
  Judgement judgement;
  switch (facts.form->kind) {
    case FormKind::kDevice:
    case FormKind::kAsync:
    case FormKind::kMps:
    case FormKind::kBlockLimit: JudgeDevice(facts, sums, &judgement); break;
    case FormKind::kServing: JudgeServing(facts, sums, &judgement); break;
    case FormKind::kLibrary: JudgeLibrary(facts, &judgement); break;
    case FormKind::kHost:
    case FormKind::kKilled: JudgeHost(facts, &judgement); break;
    case FormKind::kTable: JudgeTable(facts, sums, &judgement); break;
    case FormKind::kPinned:
      Say(&judgement, Explanation::pinned,
          "page-locked (pinned) memory of the host ran out; CUDA reports that as out of memory");
      break;
    case FormKind::kSharedMemory:
      Say(&judgement, Explanation::shared_memory,
          "/dev/shm, through which worker processes hand over data, is full; a container gets 64 "
          "MiB of it unless told otherwise");
      break;
    case FormKind::kKernel: {
      const auto& required = facts[Quantity::kRequired];
      const auto& allowed = facts[Quantity::kAllowed];
      Say(&judgement, Explanation::not_memory, "this is no lack of GPU memory: a kernel ",
          facts.form->anchor == "invalid configuration argument"
              ? "was started with a grid or block that the GPU does not allow"
              : "requests more on-chip shared memory in a block of threads than this GPU has",
          required.has_value() && allowed.has_value()
              ? StrCat(" (", FormatCount(required->bytes), " bytes of ",
                       FormatCount(allowed->bytes), ")")
              : "");
      break;
    }
    case FormKind::kBadSize: JudgeBadSize(&judgement); break;
    case FormKind::kSilentDevice:
      if (facts[FrameHint::kPinning]) {
        Say(&judgement, Explanation::pinned,
            "page-locked (pinned) memory of the host ran out; CUDA reports that as out of memory");
      } else if (!JudgeUnified(facts, &judgement)) {
        Say(&judgement, Explanation::no_numbers,
            facts.form->name.find("NVML") != std::string_view::npos
                ? "memory ran out, and PyTorch failed once more while it wrote the error: NVML "
                  "answers no questions on a MIG slice, a Jetson, or in such a container"
                : StrCat("the GPU's memory ran out, and this text (", facts.form->name,
                         ") has no figures"));
      }
      break;
    case FormKind::kOther: JudgeOther(facts, &judgement); break;
    case FormKind::kNone:  // LogScan finds none of these
    case FormKind::kMention:
      Say(&judgement, Explanation::no_numbers,
          "the text speaks of memory running out, in no form that is known");
      break;
  }
  return judgement;
}

}  // namespace memreplay
