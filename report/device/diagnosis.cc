#include <algorithm>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "report/device/device_report.h"
#include "report/words/answer.h"
#include "report/words/holding.h"
#include "report/words/names.h"
#include "report/words/sizes.h"
#include "report/words/verdict.h"
#include "sim/category/category.h"
#include "sim/recording/replay_settings.h"
#include "trace/value/bounded.h"
#include "trace/value/strings.h"
#include "trace/value/units.h"

namespace memreplay {
namespace {

constexpr size_t kMaxShares = 4;
constexpr int64_t kMinShare = 50;     // one in so many: smaller shares are "other"
constexpr int64_t kUnusedShare = 10;  // one in so many of reserved memory: less is not an issue
constexpr int64_t kLittle = int64_t{64} << 20;  // unused memory that is not worth tuning

std::string Capitalized(std::string text) {
  if (!text.empty()) text[0] = absl::ascii_toupper(text[0]);
  return text;
}

int64_t BytesOf(const proto::Categories& categories, Category category) {
  const auto found = categories.bytes_by_category().find(std::string(CategoryName(category)));
  return found == categories.bytes_by_category().end() ? 0 : found->second;
}

// Treats parameters and buffers as one in a sentence.
Category InSentence(Category category) {
  return category == Category::kBuffer ? Category::kParameter : category;
}

std::vector<std::pair<int64_t, Category>> Shares(const proto::Categories& categories) {
  std::map<Category, int64_t> bytes;
  for (size_t c = 0; c < kCategories; ++c) {
    const auto category = static_cast<Category>(c);
    const int64_t of_category = BytesOf(categories, category);
    if (of_category != 0) bytes[InSentence(category)] += of_category;
  }
  std::vector<std::pair<int64_t, Category>> shares;
  for (const auto& [category, amount] : bytes) shares.emplace_back(amount, category);
  absl::c_stable_sort(shares, [](const auto& a, const auto& b) { return a.first > b.first; });
  return shares;
}

std::string NounOf(const proto::Categories& categories, Category category) {
  return StrCat(CategoryNoun(CategoryName(category)),
                categories.peak_in_vain() && category == Category::kActivation
                    ? " kept for a backward pass that does not come"
                    : "");
}

// Returns "2.03 GiB of it "; "" if it is all.
std::string PartOf(int64_t bytes, int64_t all) {
  return FormatSize(bytes) == FormatSize(all) ? "" : StrCat(FormatSize(bytes), " of it ");
}

// Returns " (2.03 GiB of it by model.py:39 forward in 339 allocations)", or what is known about the
// unknown.
std::string Detail(const proto::Categories& categories, Category category, int64_t bytes,
                   bool has_events) {
  if (category == Category::kParameter) return "";  // the line that moves a module is no help
  const bool is_unknown = category == Category::kUnknown;
  for (const proto::Categories::Line& line : categories.lines()) {
    if (line.category() != CategoryName(category) || !line.has_stack()) continue;
    if (IsLessThanOneIn(is_unknown ? 3 : 10, line.live_bytes(), bytes)) break;
    return StrCat(" (", PartOf(line.live_bytes(), bytes), "by ", line.line(), " in ",
                  FormatCount(line.allocations(), "allocation"), ")");
  }
  if (!is_unknown || 2 * categories.start_unknown_bytes() < bytes || !has_events) return "";
  return StrCat(" (", PartOf(categories.start_unknown_bytes(), bytes),
                "allocated before the recording began)");
}

// Returns "6.56 GiB activations (...), 3.15 GiB optimizer state, 290 MiB other".
std::string Holders(const proto::DeviceReport& device) {
  const proto::Categories& categories = device.categories();
  // A schedule's lines are its tags.
  const auto detail = [&](Category category, int64_t bytes) {
    return device.inventory().is_program() && category != Category::kUnknown
               ? ""
               : Detail(categories, category, bytes, device.events() > 0);
  };
  const std::vector<std::pair<int64_t, Category>> shares = Shares(categories);
  const int64_t all = categories.peak_bytes();
  if (shares.empty() || all == 0) return "";
  const auto& [most, category] = shares[0];
  if (IsLessThanOneIn(kMinShare, all - most, all)) {
    const std::string_view how_much = most == all ? "all" : "nearly all";
    return category == Category::kUnknown
               ? StrCat("what it is for is unknown", detail(category, most))
               : StrCat(how_much, " ", NounOf(categories, category), detail(category, most));
  }
  std::string text;
  int64_t said = 0;
  for (size_t i = 0; i < shares.size(); ++i) {
    const auto& [bytes, kind] = shares[i];
    if (i > 0 && (i == kMaxShares || IsLessThanOneIn(kMinShare, bytes, all))) break;
    StrAppend(&text, i == 0 ? "" : ", ", FormatSize(bytes), " ", NounOf(categories, kind),
              i == 0 || kind == Category::kUnknown ? detail(kind, bytes) : "");
    said += bytes;
  }
  if (!IsLessThanOneIn(kMinShare, all - said, all)) {
    StrAppend(&text, ", ", FormatSize(all - said), " other");
  }
  return text;
}

// Returns " in the forward pass of step 3"; "" if there are no phases.
std::string PhaseWords(const proto::Categories& categories) {
  const std::string& phase = categories.peak_phase();
  if (phase == "other" && categories.phases_size() == 1) return "";
  std::string words = phase == "forward"      ? " in the forward pass"
                      : phase == "backward"   ? " in the backward pass"
                      : phase == "optimizer"  ? " in the optimizer's step"
                      : phase == "evaluation" ? " in evaluation or inference"
                      : phase == "load"       ? " before the first pass"
                                              : " between passes";
  const bool has_steps =
      absl::c_any_of(categories.phases(), [](const auto& other) { return other.step() > 1; });
  if (categories.peak_step() > 0 && has_steps && phase != "load" && phase != "evaluation" &&
      phase != "other") {
    StrAppend(&words, " of step ", categories.peak_step());
  }
  return words;
}

// Returns what reduces the memory at the peak, according to what holds most of it.
std::string Reduce(const proto::Categories& categories) {
  const auto sum = [&](std::initializer_list<Category> kinds) {
    int64_t bytes = 0;
    for (const Category kind : kinds) bytes += BytesOf(categories, kind);
    return bytes;
  };
  const struct {
    int64_t bytes;
    std::string_view advice;
  } kAdvice[] = {
      {sum({Category::kActivation, Category::kLogits}),
       categories.peak_in_vain() ? "run the pass under torch.no_grad()"
                                 : "use a smaller batch or activation checkpointing"},
      {sum({Category::kParameter, Category::kBuffer, Category::kGradient, Category::kOptimizerState,
            Category::kCopy}),
       "shard or offload parameters, gradients and optimizer state, or store them in fewer bits"},
      {sum({Category::kCache}), "keep fewer or shorter sequences"},
      {sum({Category::kTemporary}), "compute in smaller pieces"},
  };
  const auto most =
      absl::c_max_element(kAdvice, [](const auto& a, const auto& b) { return a.bytes < b.bytes; });
  return categories.peak_bytes() == 0 || 2 * most->bytes < categories.peak_bytes()
             ? ""
             : StrCat("; to need less, ", most->advice);
}

// Returns "; 3.90 GiB of it is cached for ..." where most of what is unused when most is reserved
// may serve only another stream than the busiest one, or only a private pool; otherwise "".
std::string OnlyForOthers(const proto::DeviceReport& device, int64_t unused) {
  const int64_t of_streams = device.fragmentation().side_stream_free_bytes();
  int64_t of_pools = 0;
  for (const proto::Fragmentation::LargestFree& free : device.fragmentation().largest_free()) {
    const bool is_private =
        absl::c_any_of(free.segment_pool_id(), [](int64_t id) { return id != 0; });
    if (is_private) of_pools = BoundedSum(of_pools, free.free_bytes());
  }
  if (2 * of_streams > unused) {
    return StrCat(
        "; ", FormatSize(of_streams),
        " of it is cached for a side stream, which alone may use it: run that work on the "
        "current stream, or call torch.cuda.empty_cache() after it.");
  }
  return 2 * of_pools > unused
             ? StrCat("; ", FormatSize(of_pools),
                      " of it lies in private pools, which only their CUDA graphs may use: give "
                      "all of them one pool.")
             : "";
}

// Returns whether settings can help: how much is reserved in excess of what is live at once.
std::string Unused(const proto::DeviceReport& device) {
  const int64_t reserved = device.peak_reserved_bytes();
  const int64_t unused = reserved - device.categories().peak_bytes();
  if (reserved == 0 || unused < 0) return "";
  const std::string share = absl::StrFormat(
      "%.0f %%", 100.0 * static_cast<double>(unused) / static_cast<double>(reserved));
  if (IsLessThanOneIn(kUnusedShare, unused, reserved))
    return StrCat(" Fragmentation is no issue (", share, ").");
  if (unused < kLittle) return "";
  const std::string others = OnlyForOthers(device, unused);
  return StrCat(" Of the ", FormatSize(reserved), " reserved, ", share, " is unused",
                !others.empty()                              ? others
                : device.has_sweep() || device.events() == 0 ? "."
                // No setting changes what was done before.
                : device.inventory().start_reserved_bytes() >= reserved
                    ? "; all of it was reserved before the recording began."
                    : "; memreplay sweep finds out whether settings help.");
}

// Returns whether memreplay wrote the recording: no other program names the release in it.
bool IsOfRecorder(const proto::DeviceReport& device) {
  return device.torch().reason() == proto::TorchProfileChoice::in_file;
}

// Returns whether so many events are as many as a ring keeps: 10,000, 25,000 or 65,536.
bool IsFullRing(int64_t events) {
  if (events < 1000) return false;
  if ((events & (events - 1)) == 0) return true;
  int64_t digits = events;
  while (digits % 10 == 0) digits /= 10;
  return events % 1000 == 0 && digits < 100;
}

std::string LearnMore(const proto::DeviceReport& device) {
  const proto::Categories& categories = device.categories();
  const int64_t unknown = BytesOf(categories, Category::kUnknown);
  if (2 * unknown < categories.peak_bytes() || device.inventory().is_program()) return "";
  if (2 * categories.start_unknown_bytes() > unknown) {
    if (IsFullRing(device.events())) {
      const std::string entries = FormatCount(device.events());
      return StrCat(" Its ", entries,
                    " events are the last ones: the ring of _record_memory_history(max_entries=",
                    device.events(), ") is full. To learn more, leave max_entries out.");
    }
    return " To learn more, start recording before the model is created.";
  }
  return categories.told() || IsOfRecorder(device)
             ? ""
             : " To learn more, record with memreplay record or "
               "memreplay.recording(), which note what tensors are for.";
}

std::string_view InVain(const proto::Categories& categories) {
  const int64_t activations = BytesOf(categories, Category::kActivation);
  return categories.peak_in_vain() && !IsLessThanOneIn(5, activations, categories.peak_bytes())
             ? " Under torch.no_grad() the pass would not keep them."
             : "";
}

// Returns the peak and what holds it.
std::string Peak(const proto::DeviceReport& device) {
  const proto::Categories& categories = device.categories();
  if (categories.peak_bytes() == 0) return StrCat(Capitalized(AnswerSentence(device)), ".");
  if (device.events() == 0) {
    return StrCat("Only the state at the end was recorded, with ",
                  FormatSize(categories.peak_bytes()), " live: ", Holders(device), ".",
                  Unused(device),
                  " To see the peak and what tensors are for, record the events, from before the "
                  "model is created.");
  }
  return StrCat("Peak ", FormatSize(categories.peak_bytes()), PhaseWords(categories), ": ",
                Holders(device), ".", InVain(categories), Unused(device), LearnMore(device));
}

// Names a moment at which memory runs out.
std::string At(const proto::DeviceReport& device) {
  const proto::Categories& categories = device.categories();
  if (categories.peak_bytes() == 0) return "";
  return StrCat(FormatSize(categories.peak_bytes()), " was live", PhaseWords(categories), ": ",
                Holders(device));
}

// Returns whether the process said who holds memory and what frees it.
bool HasRemedy(const proto::Holding& holding) {
  const auto is_freed = [](const auto& holder) { return !holder.remedy().empty(); };
  return absl::c_any_of(holding.growth().holders(), is_freed) ||
         absl::c_any_of(holding.held(), is_freed);
}

std::string OutOfMemory(const proto::DeviceReport& device) {
  const proto::OutOfMemory& oom = device.oom();
  const std::string at = At(device);
  std::string text = StrCat(VerdictName(oom.verdict()), ": ", oom.sentence(), ".",
                            at.empty() ? "" : StrCat(" ", at));
  if (oom.steps().may_be_layers() && oom.steps().growth_bytes_per_step() > 0) {
    StrAppend(&text, ", after ", FormatCount(oom.steps().steps(), "repeat"), " that kept ",
              FormatSize(oom.steps().growth_bytes_per_step()),
              " each (perhaps the layers of one pass)");
  }
  if (oom.verdict() == proto::Verdict::true_shortage ||
      oom.verdict() == proto::Verdict::too_large) {
    StrAppend(&text, at.empty() ? "" : ".", " No setting helps",
              HasRemedy(device.holding()) ? "" : Reduce(device.categories()));
    return text + ".";
  }
  return at.empty() ? text : text + ".";
}

// Describes an out of memory that was not analysed: in a replay, or in what a file lists.
std::string RecordedShortage(const proto::DeviceReport& device) {
  const proto::Categories& categories = device.categories();
  const std::string at = At(device);
  return StrCat(
      "Out of memory",
      device.ooms() > 1 ? StrCat(" ", FormatCount(device.ooms(), "time"), ", the last") : "",
      " at event ", FormatCount(categories.peak_event()), at.empty() ? "" : StrCat(", when ", at),
      ". memreplay oom reports why, and what would have helped.");
}

std::string WhatIf(const proto::DeviceReport& device) {
  const proto::Categories& categories = device.categories();
  std::string text = StrCat(Capitalized(AnswerSentence(device)), ".");
  if (categories.peak_bytes() == 0) return text;
  if (device.ooms() > 0) {
    return StrCat(text, " At the first of these, ", At(device),
                  ". memreplay oom reports why, and what would have helped.");
  }
  return StrCat(text, " At most ", FormatSize(categories.peak_bytes()), " is live",
                PhaseWords(categories), ": ", Holders(device), ".", Unused(device));
}

std::string NoOutOfMemory(const proto::DeviceReport& device) {
  const std::string sentence = StrCat(Capitalized(device.oom().sentence()), ".");
  const bool may_be_missed =
      device.capacity_bytes() == 0 && !device.inventory().is_program() && !IsOfRecorder(device);
  return StrCat(sentence, device.categories().peak_bytes() == 0 ? "" : StrCat(" ", Peak(device)),
                may_be_missed
                    ? " To catch the event, record with memreplay.recording() or memreplay record: "
                      "they write the snapshot at the moment memory runs out."
                    : "");
}

// Returns whether a device can have so many bytes; sums of sizes that a file made up may even have
// wrapped.
bool IsPlausible(const proto::DeviceReport& device) {
  const auto is = [](int64_t bytes) {
    return bytes >= 0 && static_cast<uint64_t>(bytes) <= kMaxDeviceMemory.value();
  };
  const proto::Categories& categories = device.categories();
  return is(device.peak_reserved_bytes()) && is(categories.peak_bytes()) &&
         is(categories.start_unknown_bytes()) &&
         absl::c_all_of(categories.lines(),
                        [&](const auto& line) { return is(line.live_bytes()); }) &&
         absl::c_all_of(categories.bytes_by_category(),
                        [&](const auto& held) { return is(held.second); });
}

bool Disagrees(const proto::DeviceReport& device) {
  return device.fidelity().has_first_divergence() ||
         device.final_blocks().matched() < device.final_blocks().compared();
}

std::string Sentences(const proto::DeviceReport& device) {
  const bool ran_out = device.oom().verdict() != proto::Verdict::none;
  switch (device.mode()) {
    case proto::Mode::sweep:
      return StrCat(Capitalized(SweepSentence(device.sweep(), device.unseen())), ".");
    case proto::Mode::fit:
      return StrCat(Capitalized(FitSentence(device.fits(), device.unseen())), ".");
    case proto::Mode::oom: return ran_out ? OutOfMemory(device) : NoOutOfMemory(device);
    case proto::Mode::gpu: return "";
    default: break;
  }
  if (ran_out) return OutOfMemory(device);
  if (device.mode() == proto::Mode::what_if) return WhatIf(device);
  return device.ooms() > 0 ? RecordedShortage(device) : Peak(device);
}

using Cost = std::tuple<bool, bool, double>;

constexpr Cost kNoCost = {};

// What costs time alone is cheaper than what goes over PCIe, and that than other results.
Cost CostOf(const proto::Advice::Row& row) {
  return {!row.preserves(), row.transfers(), row.cost_rank()};
}

}  // namespace

std::string DiagnosisOf(const proto::DeviceReport& device) {
  const bool is_npu = absl::c_find(device.notes(), kNpuNote) != device.notes().end();
  return StrCat(is_npu ? "Recorded on an Ascend NPU, whose allocator is not modelled. " : "",
                Disagrees(device) ? StrCat(FidelitySentence(device), ". ") : "",
                absl::StrReplaceAll(HoldingText(device.holding(), /*spare=*/-1), {{"\n", " "}}),
                Sentences(device));
}

void AddDiagnoses(proto::Report* report) {
  for (proto::DeviceReport& device : *report->mutable_devices()) {
    if (!IsPlausible(device)) device.clear_categories();
    device.set_diagnosis(DiagnosisOf(device));
  }
}

void CompareRow(const proto::Advice& advice, proto::Advice::Row* row) {
  if (!row->error().empty()) return;
  row->set_saved_bytes(advice.as_is().peak_reserved_bytes() - row->peak_reserved_bytes());
  if (advice.goal_bytes() == 0) return;
  row->set_survives(row->smallest_bytes() > 0 && row->smallest_bytes() <= advice.goal_bytes());
  row->set_fits(row->survives() && !advice.is_lower_bound());
  row->set_spare_bytes(advice.goal_bytes() - row->smallest_bytes());
}

void RankRows(proto::Advice* advice) {
  const auto key = [&](const proto::Advice::Row& row) {
    return std::make_tuple(!row.error().empty(), !row.unwritten().empty(),
                           SavesNothing(row, *advice), !row.fits(),
                           row.fits() ? CostOf(row) : kNoCost, row.smallest_bytes() == 0,
                           row.smallest_bytes(), row.peak_reserved_bytes(), row.cost_rank());
  };
  absl::c_stable_sort(
      *advice->mutable_rows(),
      [&](const proto::Advice::Row& a, const proto::Advice::Row& b) { return key(a) < key(b); });
}

}  // namespace memreplay
