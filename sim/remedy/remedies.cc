#include "sim/remedy/remedies.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "sim/workload/step_growth.h"
#include "sim/workload/steps.h"

namespace memreplay {
namespace {

constexpr Bytes kSmall = MiB(1);
constexpr size_t kMaxCheckpointed = 3;  // modules
constexpr double kWorthwhile = 0.02;    // of the maximum that is live
constexpr size_t kKept = 2;             // temporaries of one parameter's update that live at once

AllocationId MadeBy(const PassFacts& facts, uint32_t request) {
  return request < facts.made.size() ? facts.made[request] : kNoAllocation;
}

// Returns where a script that saves nothing would free an allocation: after the operation that
// follows the one that made it, before `end`. Operations are told apart by their stacks.
uint32_t AfterLastUse(const PassFacts& facts, AllocationId id, uint32_t end) {
  uint32_t stack = facts.spans[id].stack;
  size_t others = 0;
  for (uint32_t i = facts.spans[id].made + 1; i < end; ++i) {
    const AllocationId next = MadeBy(facts, i);
    if (next == kNoAllocation || facts.spans[next].stack == stack) continue;
    stack = facts.spans[next].stack;
    if (++others == 2) return i;
  }
  return end;
}

// Activation checkpointing.

// Returns where autograd reaches a call, given the first free of what the call saved: before the
// allocations that come directly before that free.
uint32_t StartOfNode(const PassFacts& facts, uint32_t freed, uint32_t least) {
  uint32_t at = freed;
  while (at > least && facts.made[at - 1] != kNoAllocation) --at;
  return at;
}

void CheckpointCall(const PassFacts& facts, const ModuleCall& call, ScheduleEdit* edit) {
  const Pass& pass = facts.passes[call.pass];
  absl::flat_hash_set<AllocationId> claimed;
  uint32_t first_use = kNoRequest, last_made = 0;
  for (const AllocationId id : call.saved) {
    if (!edit->Claim(id)) continue;
    claimed.insert(id);
    // Autocast keeps its copies of weights until it ends.
    const bool is_copy = facts.meanings->of[id].category == Category::kCopy;
    edit->FreeBefore(id,
                     is_copy ? std::max(pass.end, call.end) : AfterLastUse(facts, id, call.end));
    first_use = std::min(first_use, facts.spans[id].freed);
    last_made = std::max(last_made, facts.spans[id].made);
  }
  if (first_use == kNoRequest || pass.backward == kNoRequest) return;  // the recording ends before
  const uint32_t at = StartOfNode(facts, first_use, pass.backward);
  const RequestView requests = facts.schedule->requests();
  absl::flat_hash_map<AllocationId, AllocationId> again;
  std::vector<AllocationId> rest;  // recomputed, in order, and not saved
  for (uint32_t i = call.begin; i <= last_made; ++i) {
    if (const AllocationId id = facts.made[i]; id != kNoAllocation) {
      // Some allocations have no place in a second computation: workspaces, and what another remedy
      // changes.
      const bool is_saved = claimed.contains(id);
      const bool is_whole = facts.spans[id].freed < pass.backward_end;
      if (!is_saved && (!facts.spans[id].is_movable || edit->IsClaimed(id) || !is_whole)) continue;
      const AllocationId made = edit->MakeBefore(at, id, facts.spans[id].size);
      again[id] = made;
      if (!is_saved) {
        rest.push_back(id);
      } else if (facts.spans[id].freed != kNoRequest) {
        edit->FreeNewBefore(made, facts.spans[id].freed);
      }
    } else if (const Event request = requests[i]; request.kind == EventKind::kFree) {
      const auto found = again.find(request.id);
      if (found == again.end() || claimed.contains(request.id)) continue;
      edit->FreeNewBefore(found->second, at);
      again.erase(found);
    }
  }
  for (const AllocationId id : rest) {
    if (const auto found = again.find(id); found != again.end()) {
      edit->FreeNewBefore(found->second, at);
    }
  }
}

// Returns the calls that are checkpointed: in each pass the first, and each `every`th after it.
std::vector<const ModuleCall*> CheckpointedCalls(const PassFacts& facts, const Remedy& remedy) {
  std::vector<const ModuleCall*> checkpointed;
  uint32_t in_pass = 0;
  const std::vector<ModuleCall>& calls = facts.modules[remedy.module].calls;
  for (size_t i = 0; i < calls.size(); ++i) {
    in_pass = i > 0 && calls[i].pass == calls[i - 1].pass ? in_pass + 1 : 0;
    if (in_pass % remedy.every == 0) checkpointed.push_back(&calls[i]);
  }
  return checkpointed;
}

void Checkpoint(const PassFacts& facts, const Remedy& remedy, ScheduleEdit* edit) {
  for (const ModuleCall* call : CheckpointedCalls(facts, remedy))
    CheckpointCall(facts, *call, edit);
}

// Measures what the forward passes and the checkpointed calls allocate, in the pass that allocates
// most.
void MeasureRecomputation(const PassFacts& facts, Remedy* remedy) {
  const auto made_in = [&](uint32_t begin, uint32_t end) {
    uint64_t bytes = 0;
    for (uint32_t i = begin; i < end && i < facts.made.size(); ++i) {
      if (facts.made[i] != kNoAllocation) bytes += facts.spans[facts.made[i]].size.value();
    }
    return bytes;
  };
  std::map<uint32_t, uint64_t> again;  // by pass: of equal ones the first counts
  for (const ModuleCall* call : CheckpointedCalls(facts, *remedy)) {
    if (!call->saved.empty()) again[call->pass] += made_in(call->begin, call->end);
  }
  for (const auto& [pass, bytes] : again) {
    if (Bytes(bytes) <= remedy->work) continue;
    remedy->work = Bytes(bytes);
    const uint64_t all = made_in(facts.passes[pass].begin, facts.passes[pass].end);
    remedy->share =
        all == 0 ? 0 : std::min(1.0, static_cast<double>(bytes) / static_cast<double>(all));
  }
}

// Activations on the host.

// Calls `take` with what autograd saves in the forward passes, and where each is not needed on the
// GPU any more: after its last use; or, for what a repeated module returns, when the next call
// returns.
template <typename Take>
void ForHost(const PassFacts& facts, const RepeatedModule& module, const Take& take) {
  absl::flat_hash_map<AllocationId, uint32_t> until;
  for (size_t i = 0; i < module.calls.size(); ++i) {
    const ModuleCall& call = module.calls[i];
    const bool has_next = i + 1 < module.calls.size() && module.calls[i + 1].pass == call.pass;
    const uint32_t end =
        has_next ? module.calls[i + 1].end : std::max(facts.passes[call.pass].end, call.end);
    for (const AllocationId id : call.returned) until[id] = end;
  }
  for (const Pass& pass : facts.passes) {
    if (pass.backward == kNoRequest && !facts.refused.has_value()) continue;
    for (const AllocationId id : facts.SavedIn(pass.begin, pass.end, pass)) {
      const Category category = facts.meanings->of[id].category;
      // The loss is used where backward begins, and the script may hold it.
      if (category == Category::kCopy || category == Category::kLogits) continue;
      const auto found = until.find(id);
      take(id, found != until.end() ? found->second : AfterLastUse(facts, id, pass.end), pass);
    }
  }
}

void OnHost(const PassFacts& facts, const Remedy& remedy, ScheduleEdit* edit) {
  const auto take = [&](AllocationId id, uint32_t until, const Pass& pass) {
    const AllocationSpan& span = facts.spans[id];
    if (span.freed < until || !edit->Claim(id)) return;
    edit->FreeBefore(id, until);
    if (span.freed == kNoRequest || pass.backward == kNoRequest || span.freed < pass.backward)
      return;
    uint32_t at = span.freed;  // before the node whose end frees it, perhaps with others
    while (at > pass.backward && MadeBy(facts, at - 1) == kNoAllocation) --at;
    const AllocationId again =
        edit->MakeBefore(StartOfNode(facts, at, pass.backward), id, span.size);
    edit->FreeNewBefore(again, span.freed);
  };
  ForHost(facts, facts.modules[remedy.module], take);
}

Bytes HostBytes(const PassFacts& facts, size_t module) {
  std::map<uint32_t, uint64_t> of_pass;
  ForHost(facts, facts.modules[module], [&](AllocationId id, uint32_t until, const Pass& pass) {
    const AllocationSpan& span = facts.spans[id];
    if (span.freed >= until) of_pass[pass.begin] += span.size.value();
  });
  uint64_t most = 0;
  for (const auto& [pass, bytes] : of_pass) most = std::max(most, bytes);
  return Bytes(most);
}

// The loss.

struct Loss {
  AllocationId logits = kNoAllocation;
  std::vector<AllocationId> made;         // from the logits, in forward, then in backward
  AllocationId gradient = kNoAllocation;  // the last of them, as large as the logits
};

// Returns the first large allocation of a category, or what the first large allocation of a loss
// function was made from: the last before it with the same number of elements, of the same or
// another type.
AllocationId LogitsOf(const PassFacts& facts, const Pass& pass) {
  std::vector<AllocationId> large;  // before the loss
  uint32_t begin = 0;               // what another pass left
  if (&pass != &facts.passes.front()) {
    const Pass& before = *(&pass - 1);
    begin = before.end;
    if (before.backward_end <= pass.begin) begin = std::max(begin, before.backward_end);
  }
  for (uint32_t i = begin; i < pass.end; ++i) {
    const AllocationId id = facts.made[i];
    if (id == kNoAllocation || facts.spans[id].size < kSmall * 4) continue;
    if (facts.meanings->of[id].category == Category::kLogits &&
        !facts.roles[facts.spans[id].stack].is_loss) {
      return id;
    }
    if (!facts.roles[facts.spans[id].stack].is_loss) {
      large.push_back(id);
      continue;
    }
    const uint64_t made = facts.spans[id].size.value();
    for (size_t k = large.size(); k > 0; --k) {
      const uint64_t size = facts.spans[large[k - 1]].size.value();
      if (size == made || 2 * size == made || size == 2 * made) return large[k - 1];
    }
    return kNoAllocation;
  }
  return kNoAllocation;
}

// Returns what a pass makes from its logits; nullopt if it cannot be distinguished from the rest.
std::optional<Loss> LossOf(const PassFacts& facts, const Pass& pass) {
  if (pass.backward == kNoRequest) return std::nullopt;
  Loss loss;
  loss.logits = LogitsOf(facts, pass);
  if (loss.logits == kNoAllocation) return std::nullopt;
  const AllocationSpan& logits = facts.spans[loss.logits];
  // They have half (of another type) to twice the size of the logits; a sequence that is shifted by
  // one has slightly less.
  const auto is_of_logits = [&](AllocationId id) {
    return 2 * facts.spans[id].size.value() >= logits.size.value() * 9 / 10 &&
           facts.spans[id].size.value() <= 2 * logits.size.value();
  };
  for (uint32_t i = logits.made + 1; i < pass.backward; ++i) {
    const AllocationId id = facts.made[i];
    if (id != kNoAllocation && is_of_logits(id)) loss.made.push_back(id);
  }
  for (uint32_t i = pass.backward; i < pass.backward_end && i < facts.made.size(); ++i) {
    const AllocationId id = facts.made[i];
    if (id == kNoAllocation) continue;
    if (is_of_logits(id)) {
      loss.made.push_back(id);
      if (facts.spans[id].size == logits.size) loss.gradient = id;
    } else if (facts.spans[id].size >= kSmall) {
      break;  // the product before the logits
    }
  }
  if (loss.gradient == kNoAllocation || loss.made.back() != loss.gradient) return std::nullopt;
  for (const AllocationId id : loss.made) {
    const AllocationSpan& span = facts.spans[id];
    if (!span.is_movable || (span.freed == kNoRequest && id != loss.gradient)) return std::nullopt;
  }
  return loss;
}

// Edits the loss so that the gradient takes the logits' place.
void FuseLoss(const PassFacts& facts, ScheduleEdit* edit) {
  for (const Pass& pass : facts.passes) {
    const std::optional<Loss> loss = LossOf(facts, pass);
    if (!loss.has_value() || !edit->Claim(loss->logits)) continue;
    const uint32_t freed = facts.spans[loss->gradient].freed;
    const uint32_t logits_freed = facts.spans[loss->logits].freed;
    if (logits_freed != kNoRequest && logits_freed < freed) edit->FreeBefore(loss->logits, freed);
    for (const AllocationId id : loss->made) {
      if (edit->Claim(id)) edit->Drop(id);
    }
  }
}

// The optimizer.

bool IsForeach(const Trace& trace, uint32_t stack) {
  for (const uint32_t index : trace.stacks[stack]) {
    if (trace.strings[trace.stacks.frame(index).name].starts_with("_multi_tensor_")) return true;
  }
  return false;
}

// Returns the temporaries of each step of an optimizer with torch._foreach_*.
std::vector<std::vector<AllocationId>> ForeachTemporaries(const PassFacts& facts) {
  std::vector<std::vector<AllocationId>> steps;
  absl::flat_hash_map<uint32_t, bool> is_foreach;  // by stack
  for (const PhaseSpan& span : facts.meanings->phases) {
    if (span.phase != Phase::kOptimizer) continue;
    std::vector<AllocationId> made;
    const uint32_t end = facts.RequestAt(span.end);
    for (uint32_t i = facts.RequestAt(span.begin); i < end; ++i) {
      const AllocationId id = facts.made[i];
      if (id == kNoAllocation || facts.meanings->of[id].category != Category::kTemporary) continue;
      const uint32_t stack = facts.spans[id].stack;
      const auto [found, is_new] = is_foreach.try_emplace(stack, false);
      if (is_new) found->second = IsForeach(facts.schedule->trace(), stack);
      if (found->second) made.push_back(id);
    }
    if (made.size() > kKept) steps.push_back(std::move(made));
  }
  return steps;
}

void WithoutForeach(const PassFacts& facts, ScheduleEdit* edit) {
  for (const std::vector<AllocationId>& made : ForeachTemporaries(facts)) {
    for (size_t i = 0; i + kKept < made.size(); ++i) {
      const uint32_t next = facts.spans[made[i + kKept]].made;
      if (facts.spans[made[i]].freed > next && edit->Claim(made[i]))
        edit->FreeBefore(made[i], next);
    }
  }
}

// Returns gradients that are freed in the pass after their optimizer's step, and where that step
// ended.
std::vector<std::pair<AllocationId, uint32_t>> LateGradients(const PassFacts& facts) {
  std::vector<std::pair<AllocationId, uint32_t>> late;
  const std::vector<PhaseSpan>& phases = facts.meanings->phases;
  std::vector<std::pair<uint32_t, uint32_t>> steps;  // begin and end, in requests
  for (const PhaseSpan& span : phases) {
    if (span.phase != Phase::kOptimizer) continue;
    steps.emplace_back(facts.RequestAt(span.begin), facts.RequestAt(span.end));
  }
  for (AllocationId id = 0; id < facts.spans.size(); ++id) {
    const AllocationSpan& span = facts.spans[id];
    if (facts.meanings->of[id].category != Category::kGradient || span.freed == kNoRequest ||
        span.made == kNoRequest) {
      continue;
    }
    const auto step = std::lower_bound(
        steps.begin(), steps.end(), span.made,
        [](const std::pair<uint32_t, uint32_t>& at, uint32_t made) { return at.first < made; });
    if (step == steps.end() || span.freed <= step->second) continue;
    // An allocation in between shows that zero_grad() did not follow at once.
    const bool is_late = std::any_of(
        facts.made.begin() + step->second, facts.made.begin() + span.freed, [&](AllocationId made) {
          return made != kNoAllocation && facts.spans[made].size >= kSmall;
        });
    if (is_late) late.emplace_back(id, step->second);
  }
  return late;
}

void ZeroEarly(const PassFacts& facts, ScheduleEdit* edit) {
  for (const auto& [id, step] : LateGradients(facts)) {
    if (edit->Claim(id)) edit->FreeBefore(id, step);
  }
}

// Leaks, and passes without backward.

void FreeLeak(const PassFacts& facts, const Remedy& remedy, ScheduleEdit* edit) {
  std::vector<uint32_t> ends;
  for (const uint64_t event : remedy.steps) ends.push_back(facts.RequestAt(event));
  for (AllocationId id = 0; id < facts.spans.size(); ++id) {
    const AllocationSpan& span = facts.spans[id];
    if (span.made == kNoRequest || span.stack != remedy.stack ||
        (remedy.size != Bytes() && span.size != remedy.size)) {
      continue;
    }
    const auto end = std::upper_bound(ends.begin(), ends.end(), span.made);
    if (end == ends.begin() || end == ends.end()) continue;
    // What the next step replaces is not a leak.
    const uint32_t after = std::next(end) == ends.end() ? *end : *std::next(end);
    if (span.freed > after && edit->Claim(id)) edit->FreeBefore(id, *end);
  }
}

// Returns what passes keep beyond the call that made it although no backward pass follows. What a
// call returns is kept to the end of the next one.
std::vector<std::pair<AllocationId, uint32_t>> KeptWithoutBackward(const PassFacts& facts) {
  std::vector<std::pair<AllocationId, uint32_t>> kept;
  absl::flat_hash_set<AllocationId> seen;
  for (const RepeatedModule& module : facts.modules) {
    for (size_t i = 0; i < module.calls.size(); ++i) {
      const ModuleCall& call = module.calls[i];
      if (!facts.passes[call.pass].keeps_in_vain) continue;
      for (const AllocationId id : call.saved) {
        if (seen.insert(id).second) kept.emplace_back(id, call.end);
      }
      if (i + 1 == module.calls.size() || module.calls[i + 1].pass != call.pass) continue;
      for (const AllocationId id : call.returned) {
        if (seen.insert(id).second) kept.emplace_back(id, module.calls[i + 1].end);
      }
    }
  }
  return kept;
}

void WithoutGradients(const PassFacts& facts, ScheduleEdit* edit) {
  for (const auto& [id, until] : KeptWithoutBackward(facts)) {
    if (facts.spans[id].freed > until && edit->Claim(id)) edit->FreeBefore(id, until);
  }
}

// Returns where training switches to evaluation and back, or without evaluation the end of each
// optimizer's step.
std::vector<uint32_t> Boundaries(const PassFacts& facts) {
  std::vector<uint32_t> changes, steps;
  Phase last = Phase::kOther;
  for (const PhaseSpan& span : facts.meanings->phases) {
    const uint32_t at = facts.RequestAt(span.begin);
    if (span.phase == Phase::kOptimizer) steps.push_back(facts.RequestAt(span.end));
    if (span.phase == Phase::kOther || span.phase == Phase::kLoad) continue;
    const bool is_change = (span.phase == Phase::kEvaluation) != (last == Phase::kEvaluation);
    if (is_change && last != Phase::kOther) changes.push_back(at);
    last = span.phase;
  }
  return changes.empty() ? steps : changes;
}

}  // namespace

std::vector<Remedy> FindRemedies(const PassFacts& facts) {
  std::vector<Remedy> remedies;
  const auto add = [&](RemedyKind kind) -> Remedy& {
    remedies.emplace_back().kind = kind;
    return remedies.back();
  };
  const auto has_changes = [&](const Remedy& remedy) {
    ScheduleEdit edit(*facts.schedule, facts.spans);
    ApplyRemedy(facts, remedy, &edit);
    return edit.changes() > 0;
  };
  add(RemedyKind::kEarlyZero);
  const DeviceTrace& device = facts.schedule->device_trace();
  const uint64_t end =
      facts.refused.has_value() ? facts.event[*facts.refused] : device.events.size();
  if (const Steps steps = FindSteps(facts.schedule->trace(), device, end); steps.count() > 0) {
    const StepGrowth growth =
        GrowthPerStep(facts.schedule->trace(), device, steps, device.events.size());
    if (const SiteGrowth* leak = FindLeak(steps, growth); leak != nullptr) {
      Remedy& remedy = add(RemedyKind::kLeak);
      remedy.stack = leak->stack;
      remedy.size = leak->size;
      remedy.steps = steps.begins;
      remedy.work = Bytes(static_cast<uint64_t>(std::max<int64_t>(leak->bytes, 0)));
    }
  }
  add(RemedyKind::kNoGrad);
  add(RemedyKind::kEmptyCache);
  add(RemedyKind::kForeach);
  for (const Pass& pass : facts.passes) {
    const std::optional<Loss> loss = LossOf(facts, pass);
    if (!loss.has_value()) continue;
    Remedy& remedy = add(RemedyKind::kFusedLoss);
    remedy.stack = facts.spans[loss->logits].stack;
    remedy.size = facts.spans[loss->logits].size;
    break;
  }
  Bytes live;  // at the start of the backward pass that has most to free
  for (const RepeatedModule& module : facts.modules) live = std::max(live, module.saved);
  for (const uint32_t every : {2U, 1U}) {
    for (size_t i = 0; i < facts.modules.size() && i < kMaxCheckpointed; ++i) {
      const double saved = static_cast<double>(facts.modules[i].saved.value());
      if (saved < kWorthwhile * static_cast<double>(live.value()) || (every == 2 && i > 0))
        continue;
      Remedy& remedy = add(RemedyKind::kCheckpoint);
      remedy.module = i;
      remedy.every = every;
      MeasureRecomputation(facts, &remedy);
    }
  }
  if (!facts.modules.empty()) {
    Remedy& remedy = add(RemedyKind::kHost);
    remedy.work = HostBytes(facts, 0);
  }
  remedies.erase(std::remove_if(remedies.begin(), remedies.end(),
                                [&](const Remedy& remedy) { return !has_changes(remedy); }),
                 remedies.end());
  return remedies;
}

void ApplyRemedy(const PassFacts& facts, const Remedy& remedy, ScheduleEdit* edit) {
  switch (remedy.kind) {
    case RemedyKind::kSettings: return;
    case RemedyKind::kEarlyZero: return ZeroEarly(facts, edit);
    case RemedyKind::kLeak: return FreeLeak(facts, remedy, edit);
    case RemedyKind::kNoGrad: return WithoutGradients(facts, edit);
    case RemedyKind::kEmptyCache:
      for (const uint32_t at : Boundaries(facts)) edit->EmptyCacheBefore(at);
      return;
    case RemedyKind::kForeach: return WithoutForeach(facts, edit);
    case RemedyKind::kFusedLoss: return FuseLoss(facts, edit);
    case RemedyKind::kCheckpoint: return Checkpoint(facts, remedy, edit);
    case RemedyKind::kHost: return OnHost(facts, remedy, edit);
  }
}

}  // namespace memreplay
