#include "sim/remedy/passes.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/hash/hash.h"
#include "sim/workload/lifetimes.h"

namespace memreplay {
namespace {

// Calls of one module are similar: this share of their allocations comes from stacks that half of
// the calls have.
constexpr double kAlike = 0.6;
// What a call returns is no smaller than 1/kReturned of the largest allocation that it leaves.
constexpr uint64_t kReturned = 8;
constexpr size_t kMaxModules = 6;
constexpr size_t kMaxLevels = 32;  // of nested modules, the innermost

bool MayBeSaved(Category category) {
  switch (category) {
    case Category::kActivation:
    case Category::kLogits:
    case Category::kTemporary:
    case Category::kCopy:
    case Category::kUnknown: return true;
    default: return false;
  }
}

// Returns "transformer.h.*.attn" for "transformer.h.3.attn".
std::string PatternOf(std::string_view path) {
  std::string pattern;
  for (const char c : path) {
    if (c < '0' || c > '9') {
      pattern += c;
    } else if (pattern.empty() || pattern.back() != '*') {
      pattern += '*';
    }
  }
  return pattern;
}

// Returns whether an allocation of a pass is live when its backward pass begins, or would be.
bool IsLiveInBackward(const PassFacts& facts, AllocationId id, const Pass& pass) {
  const AllocationSpan& span = facts.spans[id];
  if (pass.backward != kNoRequest) return span.freed >= pass.backward;
  // The recording ends before the backward pass.
  if (pass.keeps_in_vain) return span.freed >= pass.end;
  if (pass.is_over_without_backward) return false;
  return span.freed == kNoRequest || (facts.refused.has_value() && span.freed > *facts.refused);
}

// A forward() on a stack.
struct Level {
  uint64_t key = 0;        // the same for each call from the same line
  uint64_t signature = 0;  // of this call and what it called
  uint32_t forward = 0;    // frames
  uint32_t caller = 0;
};

class LevelsOfStacks {
 public:
  explicit LevelsOfStacks(const Trace& trace) : trace_(trace), levels_(trace.stacks.size()) {
    kinds_.reserve(trace.stacks.frame_count());
    for (uint32_t i = 0; i < trace.stacks.frame_count(); ++i) kinds_.push_back(KindOf(i));
    for (uint32_t stack = 0; stack < levels_.size(); ++stack) levels_[stack] = Find(stack);
  }
  const std::vector<Level>& operator[](uint32_t stack) const { return levels_[stack]; }

 private:
  enum class FrameKind : uint8_t { kNative, kOther, kForward, kModuleCall };

  FrameKind KindOf(uint32_t index) const {
    const Frame& frame = trace_.stacks.frame(index);
    const std::string_view file = trace_.strings[frame.filename];
    const std::string_view name = trace_.strings[frame.name];
    if (!file.ends_with(".py") && !file.starts_with('<')) return FrameKind::kNative;
    if (file.ends_with("nn/modules/module.py") || file.ends_with("nn\\modules\\module.py")) {
      return FrameKind::kModuleCall;
    }
    return name == "forward" ? FrameKind::kForward : FrameKind::kOther;
  }

  std::vector<Level> Find(uint32_t stack) const {
    std::vector<Level> levels;
    uint64_t signature = 0;
    uint32_t forward = kNoRequest;  // a frame, since the last call of a module
    uint64_t forward_signature = 0;
    bool was_called = false;
    for (const uint32_t frame : trace_.stacks[stack]) {  // innermost first
      const FrameKind kind = kinds_[frame];
      if (kind == FrameKind::kNative) continue;
      signature = absl::HashOf(signature, frame);
      if (kind == FrameKind::kModuleCall) {
        was_called = was_called || forward != kNoRequest;
        continue;
      }
      if (levels.size() == kMaxLevels) break;
      if (was_called) {
        const Frame& inner = trace_.stacks.frame(forward);
        const uint64_t key = absl::HashOf(inner.filename, inner.name, frame);
        // If a module is inside one of its own kind, the outer counts.
        const auto same = std::find_if(levels.begin(), levels.end(),
                                       [&](const Level& level) { return level.key == key; });
        const Level level = {key, forward_signature, forward, frame};
        if (same == levels.end()) {
          levels.push_back(level);
        } else {
          *same = level;
        }
        forward = kNoRequest;
        was_called = false;
      }
      if (kind == FrameKind::kForward) {
        forward = frame;
        forward_signature = signature;
      }
    }
    return levels;
  }

  const Trace& trace_;
  std::vector<FrameKind> kinds_;  // of frames
  std::vector<std::vector<Level>> levels_;
};

class PassFinder {
 public:
  PassFinder(const Schedule& schedule, const Meanings& meanings) : schedule_(schedule) {
    facts_.schedule = &schedule;
    facts_.meanings = &meanings;
  }

  PassFacts Find() {
    facts_.roles = StackRoles(schedule_.trace());
    facts_.spans = AllocationSpans(schedule_);
    ReadRequests();
    FindPasses();
    std::vector<RepeatedModule> modules = ByNotes();
    if (modules.empty()) modules = ByStacks();
    for (RepeatedModule& module : modules) {
      if (!IsRepeated(module)) continue;
      FindSaved(module);
      if (module.saved > Bytes()) facts_.modules.push_back(std::move(module));
    }
    std::stable_sort(
        facts_.modules.begin(), facts_.modules.end(),
        [](const RepeatedModule& a, const RepeatedModule& b) { return a.saved > b.saved; });
    if (facts_.modules.size() > kMaxModules) facts_.modules.resize(kMaxModules);
    return std::move(facts_);
  }

 private:
  void ReadRequests() {
    const RequestView requests = schedule_.requests();
    facts_.made.assign(requests.size(), kNoAllocation);
    facts_.event.reserve(requests.size());
    uint32_t last = 0;
    for (uint32_t i = 0; i < requests.size(); ++i) {
      last = std::max(last, static_cast<uint32_t>(EventOfRequest(schedule_, i)));
      facts_.event.push_back(last);
      const Event request = requests[i];
      if (request.kind != EventKind::kAlloc || request.id >= facts_.spans.size()) continue;
      facts_.made[i] = request.id;
      if (RanOutWhenRecorded(schedule_, i)) facts_.refused = i;
    }
  }

  void FindPasses() {
    const std::vector<PhaseSpan>& phases = facts_.meanings->phases;
    for (size_t i = 0; i < phases.size(); ++i) {
      const PhaseSpan& span = phases[i];
      if (span.phase == Phase::kBackward) {
        if (facts_.passes.empty() || facts_.passes.back().backward != kNoRequest) {
          // No module was called: there is only a loss, or a compiled model.
          const uint32_t begin = facts_.passes.empty() ? 0 : facts_.passes.back().backward_end;
          facts_.passes.push_back(
              {begin, facts_.RequestAt(span.begin), kNoRequest, kNoRequest, false, false});
        }
        for (size_t k = facts_.passes.size(); k > 0; --k) {
          Pass& pass = facts_.passes[k - 1];
          if (pass.backward != kNoRequest) break;
          pass.backward = facts_.RequestAt(span.begin);
          pass.backward_end = facts_.RequestAt(span.end);
        }
      } else if (span.phase == Phase::kForward || span.phase == Phase::kEvaluation) {
        if (!facts_.passes.empty() && facts_.passes.back().backward == kNoRequest) {
          facts_.passes.back().is_over_without_backward = true;  // unless backward comes later
        }
        uint32_t end = facts_.RequestAt(span.end);
        // What it keeps may be freed as soon as it returns.
        while (span.is_in_vain && end > 0 && facts_.made[end - 1] == kNoAllocation) --end;
        facts_.passes.push_back({facts_.RequestAt(span.begin), end, kNoRequest, kNoRequest,
                                 span.is_in_vain || span.phase == Phase::kEvaluation,
                                 span.is_in_vain});
      }
    }
    for (Pass& pass : facts_.passes) {
      if (!pass.is_over_without_backward || pass.backward == kNoRequest) continue;
      // Several passes came before this backward pass, which belongs to the one whose allocations
      // it finds.
      uint64_t live = 0, kept = 0;
      for (uint32_t i = pass.begin; i < pass.end; ++i) {
        if (facts_.made[i] == kNoAllocation) continue;
        const AllocationSpan& span = facts_.spans[facts_.made[i]];
        if (span.freed >= pass.end) live += span.size.value();
        if (span.freed >= pass.backward) kept += span.size.value();
      }
      pass.is_over_without_backward = 2 * kept <= live;
      if (pass.is_over_without_backward) pass.backward = pass.backward_end = kNoRequest;
      pass.keeps_in_vain = pass.keeps_in_vain && pass.is_over_without_backward;
    }
  }

  // Returns the pass that contains a request, or the number of passes if none does.
  uint32_t PassAt(uint32_t request) const {
    const auto after =
        std::upper_bound(facts_.passes.begin(), facts_.passes.end(), request,
                         [](uint32_t at, const Pass& pass) { return at < pass.begin; });
    const auto none = static_cast<uint32_t>(facts_.passes.size());
    if (after == facts_.passes.begin()) return none;
    const auto pass = std::prev(after);
    return request < pass->end ? static_cast<uint32_t>(pass - facts_.passes.begin()) : none;
  }

  std::vector<RepeatedModule> ByNotes() const {
    std::map<std::string, RepeatedModule> modules;
    struct Open {
      bool is_module;
      uint32_t name;
      uint64_t event;
    };
    std::vector<Open> open;
    for (const MemoryNote& note : schedule_.device_trace().notes) {
      switch (note.kind) {
        case NoteKind::kForward:
        case NoteKind::kEvaluation:
        case NoteKind::kBackward:
        case NoteKind::kOptimizer: open.push_back({false, 0, note.event}); break;
        case NoteKind::kModule: open.push_back({true, note.name, note.event}); break;
        case NoteKind::kEnd: {
          if (open.empty()) break;
          const Open ended = open.back();
          open.pop_back();
          if (!ended.is_module) break;
          const uint32_t begin = facts_.RequestAt(ended.event);
          const uint32_t end = facts_.RequestAt(note.event);
          const uint32_t pass = PassAt(begin);
          const std::string path = PatternOf(schedule_.trace().strings[ended.name]);
          if (begin >= end || pass == facts_.passes.size() || path.find('*') == path.npos) break;
          RepeatedModule& module = modules[path];
          module.path = path;
          module.calls.push_back({begin, end, pass, {}, {}});
          break;
        }
        default: break;
      }
    }
    std::vector<RepeatedModule> found;
    for (auto& [path, module] : modules) {
      std::sort(module.calls.begin(), module.calls.end(),
                [](const ModuleCall& a, const ModuleCall& b) { return a.begin < b.begin; });
      found.push_back(std::move(module));
    }
    return found;
  }

  std::vector<RepeatedModule> ByStacks() const {
    const LevelsOfStacks levels(schedule_.trace());
    struct Open {
      RepeatedModule module;
      absl::flat_hash_map<uint64_t, uint32_t> calls_with;  // signature: calls
      std::map<uint64_t, uint64_t> made_with;              // allocations
      uint64_t first = 0, last = 0;                        // signatures
      absl::flat_hash_set<uint64_t> seen;                  // in this call
      absl::flat_hash_set<uint32_t> lines;                 // frames of forward()
      uint32_t last_line = kNoRequest;
      std::vector<bool> is_same_line;  // by call: begins where the last continued
    };
    absl::flat_hash_map<uint64_t, Open> modules;
    std::vector<uint64_t> order;     // keys in order of appearance
    std::vector<uint64_t> is_going;  // keys of calls that continue
    for (uint32_t p = 0; p < facts_.passes.size(); ++p) {
      is_going.clear();
      const Pass& pass = facts_.passes[p];
      for (uint32_t i = pass.begin; i < pass.end; ++i) {
        if (facts_.made[i] == kNoAllocation) continue;
        const std::vector<Level>& now = levels[facts_.spans[facts_.made[i]].stack];
        for (const uint64_t key : is_going) {
          const bool goes_on = std::any_of(now.begin(), now.end(),
                                           [&](const Level& level) { return level.key == key; });
          if (!goes_on) modules[key].module.calls.back().end = i;
        }
        const std::vector<uint64_t> before = std::move(is_going);
        is_going.clear();
        for (const Level& level : now) {
          const auto [found, is_new] = modules.try_emplace(level.key);
          Open& open = found->second;
          if (is_new) {
            order.push_back(level.key);
            open.module.forward = level.forward;
            open.module.caller = level.caller;
          }
          const bool goes_on = std::find(before.begin(), before.end(), level.key) != before.end() &&
                               (level.signature != open.first || open.last == open.first);
          if (!goes_on) {
            if (!open.module.calls.empty() && open.module.calls.back().end == kNoRequest) {
              open.module.calls.back().end = i;
            }
            const bool is_between =
                std::find(before.begin(), before.end(), level.key) == before.end();
            open.is_same_line.push_back(!is_between && open.last_line == level.forward);
            open.module.calls.push_back({i, kNoRequest, p, {}, {}});
            open.first = level.signature;
            open.seen.clear();
          }
          open.last = level.signature;
          open.last_line = level.forward;
          open.lines.insert(level.forward);
          ++open.made_with[level.signature];
          if (open.seen.insert(level.signature).second) ++open.calls_with[level.signature];
          is_going.push_back(level.key);
        }
      }
      uint32_t end = pass.end;  // what is freed when a call returns precedes the next request
      while (end < facts_.made.size() && facts_.made[end] == kNoAllocation) ++end;
      for (const uint64_t key : is_going) modules[key].module.calls.back().end = end;
    }
    std::vector<RepeatedModule> found;
    for (const uint64_t key : order) {
      Open& open = modules[key];
      MergeLoops(open.lines.size(), open.is_same_line, &open.module.calls);
      uint64_t alike = 0, all = 0;
      for (const auto& [signature, count] : open.made_with) {
        all += count;
        if (2 * size_t{open.calls_with[signature]} >= open.module.calls.size()) alike += count;
      }
      if (static_cast<double>(alike) < kAlike * static_cast<double>(all)) continue;
      found.push_back(std::move(open.module));
    }
    return found;
  }

  // Merges calls that repeat on one line of a function of several lines: they are a loop there, not
  // other calls.
  static void MergeLoops(size_t lines, const std::vector<bool>& is_same_line,
                         std::vector<ModuleCall>* calls) {
    if (lines < 2) return;
    std::vector<ModuleCall> merged;
    for (size_t i = 0; i < calls->size(); ++i) {
      if (is_same_line[i] && !merged.empty() && merged.back().pass == (*calls)[i].pass) {
        merged.back().end = (*calls)[i].end;
      } else {
        merged.push_back(std::move((*calls)[i]));
      }
    }
    *calls = std::move(merged);
  }

  static bool IsRepeated(const RepeatedModule& module) {
    for (size_t i = 1; i < module.calls.size(); ++i) {
      if (module.calls[i].pass == module.calls[i - 1].pass) return true;
    }
    return false;
  }

  void FindSaved(RepeatedModule& module) const {
    std::map<uint32_t, uint64_t> of_pass;
    for (size_t i = 0; i < module.calls.size(); ++i) {
      ModuleCall& call = module.calls[i];
      const Pass& pass = facts_.passes[call.pass];
      const std::vector<AllocationId> live = facts_.SavedIn(call.begin, call.end, pass);
      if (live.empty()) continue;
      const bool has_next = i + 1 < module.calls.size() && module.calls[i + 1].pass == call.pass;
      const uint32_t until = has_next ? module.calls[i + 1].end : std::max(pass.end, call.end);
      const absl::flat_hash_set<AllocationId> returned =
          pass.backward == kNoRequest ? LastLarge(live)
                                      : FreedFirst(live, facts_.SavedIn(call.end, until, pass));
      for (const AllocationId id : live) {
        (returned.contains(id) ? call.returned : call.saved).push_back(id);
        if (!returned.contains(id)) of_pass[call.pass] += facts_.spans[id].size.value();
      }
    }
    for (const auto& [pass, bytes] : of_pass) module.saved = std::max(module.saved, Bytes(bytes));
  }

  // Returns what is freed first. A backward pass runs backwards: what a call returned is freed with
  // what was made of it later (`after`), before the rest of the call. The boundary is where the
  // fewest are on the wrong side.
  absl::flat_hash_set<AllocationId> FreedFirst(const std::vector<AllocationId>& live,
                                               const std::vector<AllocationId>& after) const {
    std::vector<std::pair<uint32_t, bool>> frees;  // request, and whether it is of `after`
    for (const AllocationId id : live) frees.emplace_back(facts_.spans[id].freed, false);
    for (const AllocationId id : after) frees.emplace_back(facts_.spans[id].freed, true);
    std::sort(frees.begin(), frees.end());
    size_t wrong = after.size(), least = wrong, boundary = 0;
    for (size_t i = 0; i < frees.size(); ++i) {
      wrong = frees[i].second ? wrong - 1 : wrong + 1;
      if (wrong <= least) {
        least = wrong;
        boundary = i + 1;
      }
    }
    absl::flat_hash_set<AllocationId> first;
    const auto freed = [&](AllocationId id) { return facts_.spans[id].freed; };
    for (const AllocationId id : live) {
      if (boundary > 0 && freed(id) <= frees[boundary - 1].first) first.insert(id);
    }
    if (first.empty()) {
      first.insert(*std::min_element(live.begin(), live.end(), [&](AllocationId a, AllocationId b) {
        return freed(a) < freed(b);
      }));
    }
    return first;
  }

  absl::flat_hash_set<AllocationId> LastLarge(const std::vector<AllocationId>& live) const {
    Bytes largest;
    for (const AllocationId id : live) largest = std::max(largest, facts_.spans[id].size);
    for (size_t i = live.size(); i > 0; --i) {
      if (facts_.spans[live[i - 1]].size * kReturned >= largest) return {live[i - 1]};
    }
    return {};
  }

  const Schedule& schedule_;
  PassFacts facts_;
};

}  // namespace

std::vector<AllocationId> PassFacts::SavedIn(uint32_t begin, uint32_t end, const Pass& pass) const {
  std::vector<AllocationId> saved;
  for (uint32_t i = begin; i < end && i < made.size(); ++i) {
    const AllocationId id = made[i];
    if (id == kNoAllocation || !spans[id].is_movable || spans[id].freed < end) continue;
    if (MayBeSaved(meanings->of[id].category) && IsLiveInBackward(*this, id, pass)) {
      saved.push_back(id);
    }
  }
  return saved;
}

uint32_t PassFacts::RequestAt(uint64_t at_event) const {
  return static_cast<uint32_t>(std::lower_bound(event.begin(), event.end(), at_event) -
                               event.begin());
}

std::optional<PassFacts> FindPassFacts(const Schedule& schedule, const Meanings& meanings) {
  if (schedule.device_trace().events.source() != nullptr) return std::nullopt;
  return PassFinder(schedule, meanings).Find();
}

}  // namespace memreplay
