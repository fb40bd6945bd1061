#include "report/ask/oom.h"

#include <algorithm>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "hardware/cards.h"
#include "report/device/categories.h"
#include "report/device/device_report.h"
#include "report/device/enums.h"
#include "report/device/inventory.h"
#include "report/device/loop.h"
#include "report/words/answer.h"
#include "report/words/sizes.h"
#include "report/words/stack_names.h"
#include "report/words/text.h"
#include "sim/oom/oom_analysis.h"
#include "sim/settings/size_rules.h"
#include "sim/whatif/smallest_capacity.h"
#include "trace/value/bounded.h"
#include "trace/value/status_macros.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

proto::Counterfactual::Kind KindOf(ChangeKind kind) {
  switch (kind) {
    case ChangeKind::kNothing: return proto::Counterfactual::nothing;
    case ChangeKind::kSetting: return proto::Counterfactual::setting;
    case ChangeKind::kEmptyCache: return proto::Counterfactual::empty_cache;
    case ChangeKind::kFreeStack: return proto::Counterfactual::free_stack;
    case ChangeKind::kOneStream: return proto::Counterfactual::one_stream;
    case ChangeKind::kOnePool: return proto::Counterfactual::one_pool;
    case ChangeKind::kMemory: return proto::Counterfactual::memory;
    case ChangeKind::kRetry: break;
  }
  return proto::Counterfactual::retry;
}

constexpr size_t kMaxPins = 3;

int64_t BirthOf(const std::vector<int64_t>& births, AllocationId id) {
  return id < births.size() ? births[id] : -1;
}

void AddLive(const Trace& trace, StackNames& names, const OomAnalysis& analysis,
             const std::vector<int64_t>& births, const OomReportOptions& options,
             proto::OutOfMemory* oom) {
  std::map<std::string, proto::HeldBytes> categories;
  int64_t stacks = 0;
  for (const StackHolding& holding : analysis.holdings) {
    const bool is_listed = static_cast<size_t>(oom->live_size()) < options.held.top;
    const std::string& filter = options.held.filter;
    proto::Stack stack;
    if (is_listed || !filter.empty()) stack = names.Of(holding.stack);
    if (!filter.empty() && !StackHas(stack, filter)) continue;
    ++stacks;
    if (is_listed) {
      proto::HeldBytes& held = *oom->add_live();
      *held.mutable_stack() = std::move(stack);
      held.set_bytes(holding.bytes.signed_value());
      held.set_requested_bytes(holding.requested.signed_value());
      held.set_allocations(static_cast<int64_t>(holding.blocks));
      for (const AllocationId id : holding.largest) held.add_events(BirthOf(births, id));
      if (options.meanings != nullptr && !holding.largest.empty()) {
        DescribeAllocation(*options.meanings, holding.largest.front(), &held);
      }
    }
    const std::string tag = TagOf(trace, holding.stack);
    if (tag.empty()) continue;
    proto::HeldBytes& category = categories[tag];
    category.set_category(tag);
    category.set_bytes(BoundedSum(category.bytes(), holding.bytes.signed_value()));
    category.set_requested_bytes(
        BoundedSum(category.requested_bytes(), holding.requested.signed_value()));
    category.set_allocations(category.allocations() + static_cast<int64_t>(holding.blocks));
  }
  oom->set_live_stacks(stacks);
  for (auto& [tag, category] : categories) *oom->add_categories() = std::move(category);
  absl::c_stable_sort(*oom->mutable_categories(),
                      [](const auto& a, const auto& b) { return a.bytes() > b.bytes(); });
}

struct Pinned {
  const SegmentInfo* segment;
  Bytes free, largest, live;
  std::vector<const BlockInfo*> pins;
};

void AddPinned(StackNames& names, const OomAnalysis& analysis, const std::vector<int64_t>& births,
               size_t top, proto::OutOfMemory* oom) {
  std::vector<Pinned> all;
  Bytes free;
  for (const SegmentInfo& segment : analysis.scene.at) {
    Pinned pinned{&segment, {}, {}, {}, {}};
    for (const BlockInfo& block : segment.blocks) {
      if (block.state == BlockState::kInactive) {
        pinned.free += block.size;
        pinned.largest = std::max(pinned.largest, block.size);
      } else {
        pinned.live += block.size;
        pinned.pins.push_back(&block);
      }
    }
    if (pinned.free == Bytes() || pinned.pins.empty()) continue;
    free += pinned.free;
    all.push_back(std::move(pinned));
  }
  oom->set_pinned_segments(std::ssize(all));
  oom->set_pinned_free_bytes(free.signed_value());
  absl::c_stable_sort(all, [](const Pinned& a, const Pinned& b) { return a.free > b.free; });
  if (all.size() > top) all.resize(top);
  for (Pinned& pinned : all) {
    proto::PinnedSegment& to = *oom->add_pinned();
    to.set_address(static_cast<int64_t>(pinned.segment->address.value()));
    to.set_total_size(pinned.segment->total_size.signed_value());
    to.set_free_bytes(pinned.free.signed_value());
    to.set_largest_free_bytes(pinned.largest.signed_value());
    to.set_live_bytes(pinned.live.signed_value());
    to.set_live_blocks(std::ssize(pinned.pins));
    to.set_stream(static_cast<int64_t>(pinned.segment->stream.value()));
    SetPool(pinned.segment->pool_id, &to);
    absl::c_stable_sort(pinned.pins,
                        [](const BlockInfo* a, const BlockInfo* b) { return a->size > b->size; });
    if (pinned.pins.size() > kMaxPins) pinned.pins.resize(kMaxPins);
    for (const BlockInfo* block : pinned.pins) {
      proto::PinnedSegment::Pin& pin = *to.add_pins();
      pin.set_address(static_cast<int64_t>(block->address.value()));
      pin.set_bytes(block->size.signed_value());
      pin.set_state(StateOf(block->state));
      *pin.mutable_stack() = names.Of(block->stack);
      const int64_t event = BirthOf(births, block->id);
      pin.set_event(event);
      pin.set_age(event < 0 ? -1 : static_cast<int64_t>(analysis.scene.event) - event);
    }
  }
}

// Words a change. `at_least` goes before the amount of memory that it would have taken.
std::string ChangeText(const Counterfactual& answer, const proto::Stack& stack,
                       std::string_view at_least) {
  switch (answer.kind) {
    case ChangeKind::kNothing: return "nothing changed (check)";
    case ChangeKind::kSetting: return answer.change;
    case ChangeKind::kEmptyCache: return "torch.cuda.empty_cache() just before";
    case ChangeKind::kRetry: return "repeating the request after a synchronisation";
    case ChangeKind::kOneStream: return "running everything on one stream";
    case ChangeKind::kOnePool: return "one pool for all CUDA graphs (graph_pool_handle())";
    case ChangeKind::kMemory:
      return answer.survives ? StrCat(at_least, FormatSize(answer.amount), " more memory",
                                      answer.by_luck < answer.amount
                                          ? StrCat(" (", FormatSize(answer.by_luck),
                                                   " also works, but not every size above it)")
                                          : "")
                             : StrCat("up to ", FormatSize(answer.amount), " more memory");
    case ChangeKind::kFreeStack:
      return StrCat("freeing ", FormatSize(answer.amount), " of ", stack.summary());
  }
  return "";
}

void AddCounterfactuals(StackNames& names, const OomAnalysis& analysis, proto::OutOfMemory* oom) {
  for (const Counterfactual& answer : analysis.counterfactuals) {
    proto::Counterfactual& to = *oom->add_counterfactuals();
    if (answer.kind == ChangeKind::kFreeStack) *to.mutable_stack() = names.Of(answer.stack);
    // What would have followed a recorded out of memory is not in the file.
    to.set_change(ChangeText(answer, to.stack(), analysis.scene.recorded ? "at least " : ""));
    to.set_kind(KindOf(answer.kind));
    to.set_survives(answer.survives);
    to.set_served(answer.served);
    to.set_peak_reserved_bytes(answer.peak_reserved.signed_value());
    to.set_conf(CleanText(answer.conf));
    to.set_amount_bytes(answer.amount.signed_value());
    to.set_by_luck_bytes(answer.by_luck.signed_value());
    to.set_is_safe(answer.is_safe);
    to.set_other_order_survives(answer.other_order.survives);
    to.set_other_order_served(answer.other_order.served);
    to.set_other_order_peak_reserved_bytes(answer.other_order.peak_reserved.signed_value());
    to.set_other_order_amount_bytes(answer.other_order.amount.signed_value());
  }
}

void AddUse(const OomAnalysis& analysis, const ReplaySettings& settings,
            const OomReportOptions& options, proto::OutOfMemory* oom) {
  const OomScene& scene = analysis.scene;
  proto::MemoryUse& use = *oom->mutable_use();
  use = MemoryUseOf(scene.at);
  use.set_pending_before_bytes(MemoryUseOf(scene.before).pending_bytes());
  use.set_device_free_bytes(scene.device_free.signed_value());
  const Bytes known = scene.reserved + scene.device_free;
  Bytes capacity = known;
  std::string source = "reserved + free; other use of the GPU is unknown";
  if (!scene.recorded) {
    capacity = settings.capacity.value_or(known);
    source = "given";
  } else if (options.card.has_value()) {
    capacity = *options.card;
    source = "given";
  } else if (const std::optional<uint64_t> total = TotalOfCardWith(known.value())) {
    capacity = Bytes(*total);
    source = "estimated: the table of GPUs has one size that this nearly fills";
  }
  use.set_capacity_bytes(capacity.signed_value());
  use.set_capacity_source(source);
  use.set_outside_bytes(BoundedSum(capacity.signed_value(), -known.signed_value()));
}

// Says why memory that is free does not serve the request, in half a sentence: most of it is of
// another pool, of another stream, or it is in pieces.
std::string WhyFreeDoesNotServe(const proto::OutOfMemory& oom) {
  int64_t of_pools = 0, of_streams = 0;
  for (const proto::Fragmentation::LargestFree& free : oom.largest_free()) {
    const bool is_own = std::equal(free.segment_pool_id().begin(), free.segment_pool_id().end(),
                                   oom.segment_pool_id().begin(), oom.segment_pool_id().end());
    const bool is_default =
        absl::c_all_of(free.segment_pool_id(), [](int64_t id) { return id == 0; });
    if (!is_own && !is_default) {
      of_pools = BoundedSum(of_pools, free.free_bytes());
    } else if (is_own && free.stream() != oom.stream()) {
      of_streams = BoundedSum(of_streams, free.free_bytes());
    }
  }
  for (const auto& [bytes, whose] : {std::pair(of_pools, " of it in private pools of CUDA graphs"),
                                     std::pair(of_streams, " of it cached for other streams")}) {
    if (bytes >= oom.obtainable_bytes() - bytes) return StrCat(FormatSize(bytes), whose);
  }
  return "in pieces too small";
}

std::string Sentence(const OomAnalysis& analysis, const proto::OutOfMemory& oom) {
  const std::string wanted = FormatSize(oom.requested_bytes());
  switch (analysis.verdict) {
    case OomVerdict::kExceedsDevice:
      return StrCat(
          FormatSize(oom.live_at_once_bytes()), " is needed at once; it has ",
          FormatSize((analysis.scene.reserved + analysis.scene.grantable).signed_value()));
    case OomVerdict::kPendingFree:
      return StrCat("the request for ", wanted, " succeeds when repeated");
    case OomVerdict::kLeak:
      return StrCat("every step leaves ", FormatSize(oom.leak().bytes_per_step()),
                    " behind: ", FormatSize(oom.leak().left_bytes()), " after ",
                    FormatCount(oom.leak().steps(), "step"), ", no room for ", wanted);
    case OomVerdict::kTrueShortage:
      return StrCat(wanted, " requested, even without fragmentation ",
                    FormatSize(BoundedSum(oom.requested_bytes(), -oom.obtainable_bytes())),
                    " short");
    case OomVerdict::kFragmentation: break;
  }
  return StrCat(wanted, " refused; ", FormatSize(oom.obtainable_bytes()), " is free, ",
                WhyFreeDoesNotServe(oom));
}

}  // namespace

proto::MemoryUse MemoryUseOf(const MemoryState& state) {
  proto::MemoryUse use;
  for (const SegmentInfo& segment : state) {
    int64_t free = 0;
    bool shared = false;
    for (const BlockInfo& block : segment.blocks) {
      const int64_t size = block.size.signed_value();
      if (block.state == BlockState::kInactive) {
        free += size;
        continue;
      }
      shared = true;
      if (block.state == BlockState::kPendingFree) {
        use.set_pending_bytes(use.pending_bytes() + size);
        continue;
      }
      const int64_t requested = block.requested_size.signed_value();
      use.set_live_requested_bytes(use.live_requested_bytes() + requested);
      use.set_internal_bytes(use.internal_bytes() + size - requested);
    }
    if (shared) {
      use.set_shared_free_bytes(use.shared_free_bytes() + free);
    } else {
      use.set_cached_segment_bytes(use.cached_segment_bytes() + free);
    }
    const int64_t total = segment.total_size.signed_value();
    use.set_reserved_bytes(use.reserved_bytes() + total);
    if (!segment.pool_id.is_default()) {
      use.set_private_pool_bytes(use.private_pool_bytes() + total);
      use.set_private_pool_free_bytes(use.private_pool_free_bytes() + free);
    }
  }
  return use;
}

proto::OutOfMemory OomReport(const Schedule& schedule, const ReplaySettings& settings,
                             const OomAnalysis* analysis, const OomReportOptions& options) {
  proto::OutOfMemory oom;
  if (analysis == nullptr) {
    oom.set_verdict(proto::Verdict::none);
    oom.set_event_index(-1);
    if (settings.as_recorded) {
      oom.set_sentence(schedule.requests().empty()
                           ? "the file has no events, so whether memory ran out cannot be seen"
                           : "the recording did not run out of memory");
    } else if (!settings.capacity.has_value()) {
      oom.set_sentence("memory does not run out: the device is unlimited; --capacity sets a limit");
    } else {
      oom.set_sentence(
          StrCat("memory does not run out on a device of ", FormatSize(*settings.capacity)));
    }
    return oom;
  }
  const Trace& trace = schedule.trace();
  const OomScene& scene = analysis->scene;
  const std::vector<int64_t> births = BirthEvents(schedule);
  oom.set_verdict(VerdictOf(analysis->verdict));
  oom.set_event_index(static_cast<int64_t>(scene.event));
  oom.set_recorded(scene.recorded);
  oom.set_requested_bytes(scene.oom.size.signed_value());
  oom.set_segment_bytes(AllocationSize(scene.oom.size, settings.config).signed_value());
  oom.set_obtainable_bytes(analysis->obtainable.signed_value());
  oom.set_ooms(static_cast<int64_t>(scene.ooms));
  oom.set_stream(static_cast<int64_t>(schedule.stream_handle(scene.oom.stream).value()));
  SetPool(schedule.pools()[scene.oom.pool], &oom);
  oom.set_segment_type(SegmentTypeOf(!IsSmall(scene.oom.size)));
  StackNames names(trace);
  *oom.mutable_stack() = names.Of(scene.oom.text_or_stack);
  AddUse(*analysis, settings, options, &oom);
  AddLive(trace, names, *analysis, births, options, &oom);
  *oom.mutable_largest_free() = FragmentationOf(scene.at).largest_free();
  AddPinned(names, *analysis, births, options.held.top, &oom);
  AddCounterfactuals(names, *analysis, &oom);
  *oom.mutable_steps() = StepsReport(names, analysis->steps, analysis->growth);
  if (analysis->leak.has_value()) {
    *oom.mutable_leak() =
        LeakReport(names, schedule.device_trace(), analysis->steps, *analysis->leak);
  }
  if (analysis->too_large.has_value()) {
    oom.set_live_at_once_bytes(analysis->too_large->requested.signed_value());
    oom.set_live_at_once_event(static_cast<int64_t>(analysis->too_large->event));
  }
  oom.set_sentence(Sentence(*analysis, oom));
  if (scene.ooms > 1) {
    oom.add_notes(StrCat("the ", scene.recorded ? "last" : "first", " of ",
                         FormatCount(static_cast<int64_t>(scene.ooms)), " out-of-memory events"));
  }
  if (!scene.exact) {
    oom.add_notes(CleanText(StrCat(
        "the replay is not exact up to this event, so the state may differ from the real one: ",
        scene.inexact_reason)));
  }
  if (!analysis->reproduced) {
    oom.add_notes(
        "on the simulated device the request succeeds although nothing was changed, so the changes "
        "below prove nothing");
  }
  if (absl::c_any_of(analysis->counterfactuals,
                     [](const Counterfactual& answer) { return answer.is_cut; })) {
    const auto requests = schedule.requests().size();
    oom.add_notes(StrCat(
        "less additional memory than shown may suffice, and not all larger amounts are proven to: "
        "at most ",
        FormatCount(static_cast<int64_t>(MaxSizes(requests)), "size"),
        " of the device were tried for each order of addresses, because each replays ",
        FormatCount(static_cast<int64_t>(requests), "request")));
  }
  if (!schedule.is_cold() && !schedule.is_program()) {
    oom.add_notes(
        "the recording began with memory in use: settings are tried as if they were set at that "
        "moment, with that memory left where it was");
  }
  return oom;
}

absl::StatusOr<proto::OutOfMemory> WhyOutOfMemory(const Schedule& schedule,
                                                  const ReplaySettings& settings,
                                                  const OomReportOptions& options,
                                                  ProgressSink* progress) {
  ASSIGN_OR_RETURN(const std::optional<OomAnalysis> analysis,
                   AnalyseOom(schedule, settings, kFreedStacks, progress));
  return OomReport(schedule, settings, analysis.has_value() ? &*analysis : nullptr, options);
}

absl::Status AddServingAdvice(const Study& study, const ServingQuestion& question,
                              ProgressSink* progress, proto::DeviceReport* report) {
  if (!RanOut(report->oom()) || study.schedule().is_program()) return absl::OkStatus();
  ASSIGN_OR_RETURN(proto::Advice advice, AdviceOf(study, study.OnCard(study.settings()), "",
                                                  progress, report, nullptr, &question));
  *report->mutable_advice() = std::move(advice);
  return absl::OkStatus();
}

absl::StatusOr<proto::DeviceReport> AskOom(const Study& study, const OomReportOptions& options,
                                           ProgressSink* progress) {
  const Schedule& schedule = study.schedule();
  const DeviceContents contents = DescribeContents(schedule);
  const bool is_what_if = !study.settings().as_recorded || contents.peaks.ooms() > 0;
  const ReplaySettings on_card =
      study.settings().as_recorded ? study.settings() : study.OnCard(study.settings());
  OomReportOptions described = options;
  described.meanings = &study.meanings();
  ASSIGN_OR_RETURN(proto::OutOfMemory oom, WhyOutOfMemory(schedule, on_card, described, progress));
  proto::DeviceReport report = ReportOom(schedule, on_card, contents, std::move(oom));
  if (is_what_if) {
    RETURN_IF_ERROR(AddControl(study, &report));
  }
  AddUnseen(study, contents.inventory, &report);
  if (!study.settings().as_recorded && IsLowerBound(report.unseen()) && !RanOut(report.oom())) {
    report.mutable_oom()->mutable_sentence()->append(", in what was recorded");
  }
  RETURN_IF_ERROR(AddServingAdvice(study, {}, progress, &report));
  StackNames names(schedule.trace());
  AddCategories(study, names, &report);
  return report;
}

}  // namespace memreplay
