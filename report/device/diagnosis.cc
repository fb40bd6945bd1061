#include <algorithm>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_format.h"
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

// Returns what reduces the memory at the peak, according to what holds most of it; "" if nothing
// holds half of it.
std::string_view Reduce(const proto::Categories& categories) {
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
  return categories.peak_bytes() == 0 || 2 * most->bytes < categories.peak_bytes() ? ""
                                                                                   : most->advice;
}

// Says how much is reserved in excess of what is live at once, where most of it is, and what to do.
void AddUnused(const proto::DeviceReport& device, proto::Diagnosis* said) {
  const int64_t reserved = device.peak_reserved_bytes();
  const int64_t unused = reserved - device.categories().peak_bytes();
  if (reserved == 0 || unused < 0) return;
  const std::string share = absl::StrFormat(
      "%.0f %%", 100.0 * static_cast<double>(unused) / static_cast<double>(reserved));
  if (IsLessThanOneIn(kUnusedShare, unused, reserved)) {
    StrAppend(said->mutable_why(), " Fragmentation is no issue (", share, ").");
    return;
  }
  if (unused < kLittle) return;
  int64_t of_pools = 0;
  for (const proto::Fragmentation::LargestFree& free : device.fragmentation().largest_free()) {
    const bool is_private =
        absl::c_any_of(free.segment_pool_id(), [](int64_t id) { return id != 0; });
    if (is_private) of_pools = BoundedSum(of_pools, free.free_bytes());
  }
  const int64_t of_streams = device.fragmentation().side_stream_free_bytes();
  std::string where;
  std::string_view what_to_do;
  if (2 * of_streams > unused) {
    where = StrCat("; ", FormatSize(of_streams),
                   " of it is cached for a side stream, which alone may use it");
    what_to_do = "Run that work on the current stream, or call torch.cuda.empty_cache() after it.";
  } else if (2 * of_pools > unused) {
    where = StrCat("; ", FormatSize(of_pools),
                   " of it lies in private pools, which only their CUDA graphs may use");
    what_to_do = "Give all CUDA graphs one pool.";
  } else if (device.inventory().start_reserved_bytes() >= reserved) {
    where = "; all of it was reserved before the recording began";  // no setting changes that
  } else if (!device.has_sweep() && device.events() > 0) {
    what_to_do = "memreplay sweep finds out whether settings help.";
  }
  StrAppend(said->mutable_why(), " Of the ", FormatSize(reserved), " reserved, ", share,
            " is unused", where, ".");
  if (said->do_().empty()) said->set_do_(std::string(what_to_do));
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
      return StrCat("Leave max_entries out to learn more: its ", entries,
                    " events are the last ones, since the ring of "
                    "_record_memory_history(max_entries=",
                    device.events(), ") is full.");
    }
    return "To learn more, start recording before the model is created.";
  }
  return categories.told() || IsOfRecorder(device)
             ? ""
             : "To learn more, record with memreplay record or memreplay.recording(), which note "
               "what tensors are for.";
}

// Returns what happened, if it is not a matter of memory at a moment.
proto::Diagnosis Sentence(std::string what) {
  proto::Diagnosis said;
  said.set_what(StrCat(Capitalized(std::move(what)), "."));
  return said;
}

// Returns the peak, what holds it and what would have made it lower.
proto::Diagnosis Peak(const proto::DeviceReport& device) {
  const proto::Categories& categories = device.categories();
  if (categories.peak_bytes() == 0) return Sentence(AnswerSentence(device));
  const std::string peak = FormatSize(categories.peak_bytes());
  proto::Diagnosis said = Sentence(
      device.events() == 0 ? StrCat("only the state at the end was recorded, with ", peak, " live")
                           : StrCat("peak ", peak, PhaseWords(categories)));
  said.set_why(StrCat(Capitalized(Holders(device)), "."));
  const int64_t activations = BytesOf(categories, Category::kActivation);
  if (categories.peak_in_vain() && !IsLessThanOneIn(5, activations, categories.peak_bytes())) {
    said.set_do_("Run the pass under torch.no_grad(), which does not keep them.");
  } else if (device.events() > 0) {
    said.set_do_(LearnMore(device));
  }
  AddUnused(device, &said);
  if (device.events() == 0 && said.do_().empty()) {
    said.set_do_(
        "To see the peak and what tensors are for, record the events, from before the model is "
        "created.");
  }
  return said;
}

// Describes a moment at which memory runs out.
std::string At(const proto::DeviceReport& device) {
  const proto::Categories& categories = device.categories();
  if (categories.peak_bytes() == 0) return "";
  return StrCat(FormatSize(categories.peak_bytes()), " was live", PhaseWords(categories), ": ",
                Holders(device));
}

// Returns the settings with which memory does not run out; first those that hold least.
std::vector<std::string> CuringSettings(const proto::OutOfMemory& oom) {
  std::vector<const proto::Counterfactual*> cures;
  for (const proto::Counterfactual& answer : oom.counterfactuals()) {
    const bool is_setting = answer.kind() == proto::Counterfactual::setting ||
                            answer.kind() == proto::Counterfactual::one_stream ||
                            answer.kind() == proto::Counterfactual::one_pool;
    if (is_setting && answer.survives()) cures.push_back(&answer);
  }
  absl::c_stable_sort(cures, [](const auto* a, const auto* b) {
    return a->peak_reserved_bytes() < b->peak_reserved_bytes();
  });
  std::vector<std::string> changes;
  for (const proto::Counterfactual* cure : cures) changes.push_back(cure->change());
  return changes;
}

// Returns what would have served a request that was refused; all was simulated.
std::string Cure(const proto::DeviceReport& device) {
  const proto::OutOfMemory& oom = device.oom();
  const std::vector<std::string> cures = CuringSettings(oom);
  if (oom.verdict() == proto::Verdict::pending_free) {
    return "Repeat the request after a synchronisation: it then succeeds (simulated).";
  }
  if (oom.verdict() == proto::Verdict::leak) {
    return StrCat("Free at the end of each step what comes from ", oom.leak().stack().summary(),
                  cures.empty() ? "" : StrCat("; ", cures[0], " only postpones it"), ".");
  }
  if (!cures.empty()) {
    return StrCat("With ", cures[0], cures.size() > 1 ? StrCat(" or ", cures[1]) : "",
                  " it would have been served (simulated)",
                  cures.size() > 2 ? StrCat("; with ", cures.size() - 2, " more, too, below") : "",
                  ".");
  }
  for (const int32_t row : device.advice().serving_rows()) {
    return StrCat(Capitalized(device.advice().rows(row).change()),
                  " would have served it (by the recording, edited and replayed).");
  }
  const bool is_in_pieces = oom.verdict() == proto::Verdict::fragmentation;
  const bool serves_here = absl::c_any_of(oom.counterfactuals(), [](const auto& answer) {
    return answer.kind() == proto::Counterfactual::setting && answer.served();
  });
  if (is_in_pieces && serves_here) {
    return "Settings below would have served this request, but not all that follow (simulated).";
  }
  const std::string_view reduce = Reduce(device.categories());
  return StrCat(is_in_pieces ? "None of the settings tried would have helped" : "No setting helps",
                reduce.empty() ? "" : StrCat("; to need less, ", reduce), ".");
}

proto::Diagnosis OutOfMemory(const proto::DeviceReport& device) {
  const proto::OutOfMemory& oom = device.oom();
  proto::Diagnosis said = Sentence(StrCat(VerdictName(oom.verdict()), ": ", oom.sentence()));
  std::string why = At(device);
  if (oom.steps().may_be_layers() && oom.steps().growth_bytes_per_step() > 0) {
    StrAppend(&why, ", after ", FormatCount(oom.steps().steps(), "repeat"), " that kept ",
              FormatSize(oom.steps().growth_bytes_per_step()),
              " each (perhaps the layers of one pass)");
  }
  if (!why.empty()) why.append(".");
  if (oom.verdict() == proto::Verdict::leak) {
    why = StrCat("Left by ", oom.leak().stack().summary(), ". ", why);
  } else if (oom.verdict() == proto::Verdict::too_large) {
    why = StrCat("No allocator could succeed at event ", FormatCount(oom.live_at_once_event()),
                 oom.live_at_once_event() > oom.event_index() ? ", later. " : ". ", why);
  } else if (oom.verdict() == proto::Verdict::pending_free) {
    why = StrCat(
        "A fitting block became free with the synchronisation, after PyTorch had looked for one. ",
        why);
  }
  said.set_why(std::move(why));
  said.set_do_(Cure(device));
  return said;
}

// Describes an out of memory that was not analysed: in a replay, or in what a file lists.
proto::Diagnosis RecordedShortage(const proto::DeviceReport& device) {
  proto::Diagnosis said = Sentence(
      StrCat("Out of memory",
             device.ooms() > 1 ? StrCat(" ", FormatCount(device.ooms(), "time"), ", the last") : "",
             device.recorded().refused_bytes() > 0
                 ? StrCat(": ", FormatSize(device.recorded().refused_bytes()), " was refused")
                 : "",
             " at event ", FormatCount(device.categories().peak_event())));
  const std::string at = At(device);
  said.set_why(at.empty() ? "" : StrCat(at, "."));
  said.set_do_("memreplay oom reports why, and what would have helped.");
  return said;
}

proto::Diagnosis WhatIf(const proto::DeviceReport& device) {
  const proto::Categories& categories = device.categories();
  proto::Diagnosis said = Sentence(AnswerSentence(device));
  if (categories.peak_bytes() == 0) return said;
  if (device.ooms() > 0) {
    said.set_why(StrCat("At the first of these, ", At(device), "."));
    said.set_do_("memreplay oom reports why, and what would have helped.");
    return said;
  }
  said.set_why(StrCat("At most ", FormatSize(categories.peak_bytes()), " is live",
                      PhaseWords(categories), ": ", Holders(device), "."));
  AddUnused(device, &said);
  return said;
}

proto::Diagnosis NoOutOfMemory(const proto::DeviceReport& device) {
  proto::Diagnosis said = Sentence(device.oom().sentence());
  if (device.categories().peak_bytes() != 0) {
    proto::Diagnosis peak = Peak(device);
    said.set_why(StrCat(peak.what(), " ", peak.why()));
    said.set_do_(peak.do_());
  }
  const bool may_be_missed =
      device.capacity_bytes() == 0 && !device.inventory().is_program() && !IsOfRecorder(device);
  if (may_be_missed) {
    said.set_do_(
        "To catch the event, record with memreplay.recording() or memreplay record: they write "
        "the snapshot at the moment memory runs out.");
  }
  return said;
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

proto::Diagnosis OfSweep(const proto::DeviceReport& device) {
  proto::Diagnosis said = Sentence(SweepSentence(device.sweep(), device.unseen()));
  if (device.sweep().rows().empty()) return said;
  const proto::SweepRow& best = device.sweep().rows(0);
  const int64_t now = device.sweep().current().peak_reserved_bytes();
  const auto negligible = static_cast<int64_t>(kNegligibleGain * static_cast<double>(now));
  if (!best.is_current() && !best.oom() && best.refused().empty() &&
      best.peak_reserved_bytes() < now - negligible) {
    said.set_do_(StrCat(best.conf().empty() ? "Unset" : "Set", " PYTORCH_CUDA_ALLOC_CONF",
                        best.conf().empty() ? "" : "=", best.conf(), " (simulated)."));
  }
  return said;
}

proto::Diagnosis OfFigures(const proto::DeviceReport& device) {
  const bool ran_out = device.oom().verdict() != proto::Verdict::none;
  switch (device.mode()) {
    case proto::Mode::sweep: return OfSweep(device);
    case proto::Mode::fit: return Sentence(FitSentence(device.fits(), device.unseen()));
    case proto::Mode::oom: return ran_out ? OutOfMemory(device) : NoOutOfMemory(device);
    case proto::Mode::gpu: return {};
    default: break;
  }
  if (ran_out) return OutOfMemory(device);
  if (device.mode() == proto::Mode::what_if) return WhatIf(device);
  return device.ooms() > 0 ? RecordedShortage(device) : Peak(device);
}

// Puts `what` before the rest, which becomes a part of why.
void PutFirst(std::string what, proto::Diagnosis* said) {
  said->set_why(StrCat(said->what(), said->why().empty() ? "" : " ", said->why()));
  said->set_what(std::move(what));
}

// Moves what is beyond 90 characters of what happened into why.
void Shorten(proto::Diagnosis* said) {
  constexpr size_t kMaxWhat = 90;
  const std::string what = said->what();
  if (what.size() <= kMaxWhat) return;
  size_t cut = 0;
  for (const std::string_view mark : {", ", "; ", ": ", ". "}) {
    size_t at = what.rfind(mark, kMaxWhat - 1);
    while (at != what.npos && at > 0 &&
           std::count(what.begin(), what.begin() + at, '(') !=
               std::count(what.begin(), what.begin() + at, ')')) {
      at = what.rfind(mark, at - 1);
    }
    if (at != what.npos) cut = std::max(cut, at);
  }
  if (cut == 0) return;
  said->set_what(what.substr(cut + 2));
  PutFirst(StrCat(what.substr(0, cut), "."), said);
  said->set_why(Capitalized(said->why()));
}

using Cost = std::tuple<bool, bool, double>;

constexpr Cost kNoCost = {};

// What costs time alone is cheaper than what goes over PCIe, and that than other results.
Cost CostOf(const proto::Advice::Row& row) {
  return {!row.preserves(), row.transfers(), row.cost_rank()};
}

}  // namespace

proto::Diagnosis DiagnosisOf(const proto::DeviceReport& device) {
  proto::Diagnosis said = OfFigures(device);
  proto::Diagnosis held = HoldingWords(device.holding(), /*spare=*/-1);
  if (!held.what().empty() && device.oom().verdict() != proto::Verdict::leak) {
    PutFirst(held.what(), &said);
  }
  if (!held.why().empty())
    said.set_why(StrCat(held.why(), said.why().empty() ? "" : " ", said.why()));
  if (!held.do_().empty()) said.set_do_(held.do_());
  if (Disagrees(device)) PutFirst(StrCat(FidelitySentence(device), "."), &said);
  if (absl::c_find(device.notes(), kNpuNote) != device.notes().end()) {
    PutFirst("Recorded on an Ascend NPU, whose allocator is not modelled.", &said);
  }
  Shorten(&said);
  return said;
}

void AddDiagnoses(proto::Report* report) {
  for (proto::DeviceReport& device : *report->mutable_devices()) {
    if (!IsPlausible(device)) device.clear_categories();
    *device.mutable_diagnosis() = DiagnosisOf(device);
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
