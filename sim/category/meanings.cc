#include "sim/category/meanings.h"

#include <algorithm>
#include <cctype>
#include <limits>
#include <map>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "sim/category/stack_roles.h"

namespace memreplay {
namespace {

// The fewest allocations of a call that say whether it keeps what backward needs.
constexpr size_t kMinPass = 12;
constexpr uint32_t kNever = std::numeric_limits<uint32_t>::max();

// What cuBLAS gets from PyTorch per handle and stream unless CUBLAS_WORKSPACE_CONFIG says
// otherwise: 2 x 4 MiB and 8 x 16 KiB, or 32 MiB on Hopper (torch.backends.cuda; seen in recordings
// of both).
constexpr uint64_t kBlasWorkspaces[] = {8'519'680, 33'554'432};

struct Life {
  uint32_t begin = 0;  // positions of events
  uint32_t end = kNever;
  Bytes size;
  uint32_t stack = 0;
  bool is_start = false;  // live before the first event
  bool is_made = false;   // by an event; neither if it was refused
};

// A phase, or if it is not known yet, the interval between two that are.
struct Draft {
  uint64_t begin = 0;
  std::optional<Phase> phase;
  bool is_pass = false;  // a forward pass of its own, even if it follows another
};

class MeaningFinder {
 public:
  MeaningFinder(const Schedule& schedule, bool use_notes)
      : schedule_(schedule),
        trace_(schedule.trace()),
        notes_(schedule.device_trace().notes),
        use_notes_(use_notes &&
                   std::any_of(notes_.begin(), notes_.end(),
                               [](const MemoryNote& note) { return !IsOfRun(note.kind); })) {}

  Meanings Find() {
    found_.modules.emplace_back();
    found_.of.resize(schedule_.allocation_count());
    if (schedule_.is_program()) {
      const RequestView requests = schedule_.requests();
      events_ = requests.size();
      ReadProgram(requests);
      return std::move(found_);
    }
    lives_.resize(schedule_.allocation_count());
    for (const StartAllocation& start : schedule_.start_allocations()) {
      lives_[start.id] = {0, kNever, start.requested_size, start.stack, true, false};
    }
    const EventView recorded = schedule_.recorded();
    events_ = recorded.size();
    ReadLives(recorded);
    roles_ = StackRoles(trace_);
    FindWeightSizes();
    if (use_notes_) {
      ReadNotes(recorded);
    } else {
      InferPhases();
    }
    FindPasses();
    Settle();
    if (!use_notes_) PairSizes();
    return std::move(found_);
  }

 private:
  using Order = std::vector<AllocationId>;

  // Schedules that were written: what they say of themselves.

  void ReadProgram(const RequestView& requests) {
    found_.is_noted = true;
    found_.phases = {{0, events_, Phase::kOther, 0}};
    const auto take = [&](AllocationId id, std::string_view tag) {
      const std::optional<Category> category = CategoryOfTag(tag);
      if (category) Say(id, *category, Evidence::kNoted);
    };
    size_t i = 0;
    for (const Event& event : requests) {
      if (event.kind == EventKind::kAlloc && event.id < found_.of.size()) {
        const absl::Span<const uint32_t> frames = trace_.stacks[event.text_or_stack];
        if (!frames.empty()) {
          take(event.id, trace_.strings[trace_.stacks.frame(frames[0]).filename]);
        }
        found_.of[event.id].phase = found_.phases.back().phase;
        found_.of[event.id].step = found_.phases.back().step;
      } else if (event.is_mark(MarkKind::kRetag) && event.id < found_.of.size()) {
        take(event.id, trace_.strings[event.text_or_stack]);
      } else if (event.is_mark(MarkKind::kPhase)) {
        PhaseSpan next = PhaseOfName(trace_.strings[event.text_or_stack]);
        next.begin = i;
        next.end = events_;
        found_.phases.back().end = i;
        if (found_.phases.back().begin == i) found_.phases.pop_back();
        found_.phases.push_back(next);
        found_.trains = found_.trains || next.phase == Phase::kBackward;
      }
      ++i;
    }
  }

  // Reads names such as "it2.bwd0" of `synth`, and words that people use.
  static PhaseSpan PhaseOfName(std::string_view name) {
    const auto has = [&](std::string_view part) { return name.find(part) != name.npos; };
    PhaseSpan span;
    span.phase = has("eval") || has("infer") || has("decode") || has("prefill") ? Phase::kEvaluation
                 : has("bwd") || has("backward")                                ? Phase::kBackward
                 : has("fwd") || has("forward")                                 ? Phase::kForward
                 : has("step") || has("optim")                                  ? Phase::kOptimizer
                 : has("model") || has("load") || has("init")                   ? Phase::kLoad
                                                                                : Phase::kOther;
    const size_t digits = name.find_first_of("0123456789");
    for (size_t i = digits; i < name.size() && std::isdigit(static_cast<unsigned char>(name[i]));
         ++i) {
      span.step = span.step * 10 + static_cast<uint32_t>(name[i] - '0');
      if (span.step > 100'000'000) break;
    }
    if (digits != name.npos) ++span.step;
    return span;
  }

  // Recordings.

  void ReadLives(const EventView& recorded) {
    AllocationId freed = kNoAllocation;  // by the last free, which its completion often follows
    for (uint32_t i = 0; i < recorded.size(); ++i) {
      const EventKind kind = recorded.kind(i);
      const AllocationId id = recorded.id(i);
      if (kind == EventKind::kOom) cut_ = i;
      if (id >= lives_.size() || id == freed) continue;
      if (kind == EventKind::kAlloc) {
        const Event event = recorded[i];
        lives_[id] = {i, kNever, event.size, event.text_or_stack, false, true};
      } else if (kind == EventKind::kFree || kind == EventKind::kFreeCompleted) {
        lives_[id].end = std::min(lives_[id].end, i);
        freed = id;
      }
    }
  }

  // Returns whether an allocation stays until the end. One that was freed because memory ran out
  // stays.
  bool Stays(const Life& life) const {
    return life.end == kNever || (cut_ != kNever && life.begin < cut_ && life.end > cut_);
  }

  // Sets what an allocation is, unless better evidence did so already.
  void Say(AllocationId id, Category category, Evidence evidence) {
    Meaning& meaning = found_.of[id];
    const bool is_better = evidence < meaning.evidence ||
                           (evidence == meaning.evidence && category < meaning.category);
    if (meaning.category != Category::kUnknown && !is_better) return;
    meaning.category = category;
    meaning.evidence = evidence;
  }

  uint32_t Module(std::string_view path) {
    if (path.empty()) return 0;
    const auto [found, is_new] =
        module_numbers_.try_emplace(std::string(path), found_.modules.size());
    if (is_new) found_.modules.emplace_back(path);
    return static_cast<uint32_t>(found->second);
  }

  static std::optional<Category> CategoryOfNote(NoteKind kind) {
    switch (kind) {
      case NoteKind::kParameter: return Category::kParameter;
      case NoteKind::kBuffer: return Category::kBuffer;
      case NoteKind::kGradient: return Category::kGradient;
      case NoteKind::kOptimizerState: return Category::kOptimizerState;
      case NoteKind::kInput: return Category::kInput;
      case NoteKind::kOutput:
      case NoteKind::kLoss: return Category::kLogits;
      default: return std::nullopt;
    }
  }

  // Returns "h.0.attn" for the parameter "h.0.attn.weight" and for its state
  // "h.0.attn.weight.exp_avg".
  static std::string_view ModuleOf(std::string_view name, NoteKind kind) {
    for (int cut = kind == NoteKind::kOptimizerState ? 2 : 1; cut > 0; --cut) {
      const size_t dot = name.rfind('.');
      if (dot == name.npos) return "";
      name = name.substr(0, dot);
    }
    return name;
  }

  void ReadNotes(const EventView& recorded) {
    found_.is_noted = true;
    is_in_module_.resize(lives_.size());
    absl::flat_hash_map<uint64_t, AllocationId> live;
    for (const StartAllocation& start : schedule_.start_allocations()) {
      live[start.address.value()] = start.id;
    }
    struct Open {
      std::optional<Phase> phase;  // its own, or else that of what it is in
      uint32_t module;
    };
    std::vector<Open> open;
    const auto phase = [&] { return open.empty() ? std::nullopt : open.back().phase; };
    const auto phase_in = [&](NoteKind kind) -> std::optional<Phase> {
      switch (kind) {
        case NoteKind::kForward: return Phase::kForward;
        case NoteKind::kEvaluation: return Phase::kEvaluation;
        case NoteKind::kBackward: return Phase::kBackward;
        case NoteKind::kOptimizer: return Phase::kOptimizer;
        default: return phase();
      }
    };
    drafts_ = {{0, std::nullopt}};
    size_t note = 0;
    for (uint64_t i = 0; i <= events_; ++i) {
      for (; note < notes_.size() && notes_[note].event <= i; ++note) {
        const MemoryNote& said = notes_[note];
        if (IsOfRun(said.kind)) continue;
        const std::string_view name = trace_.strings[said.name];
        if (const std::optional<Category> category = CategoryOfNote(said.kind)) {
          const auto found = live.find(said.address.value());
          if (found == live.end()) continue;
          Say(found->second, *category, Evidence::kNoted);
          const uint32_t module = Module(ModuleOf(name, said.kind));
          if (module != 0) found_.of[found->second].module = module;
          continue;
        }
        if (said.kind == NoteKind::kEnd) {
          if (!open.empty()) open.pop_back();
        } else {
          const bool has_path = said.kind == NoteKind::kModule || said.kind == NoteKind::kForward ||
                                said.kind == NoteKind::kEvaluation;
          open.push_back({phase_in(said.kind), has_path ? Module(name) : 0});
        }
        if (said.kind != NoteKind::kModule) {
          Begin(i, phase(), said.kind == NoteKind::kForward && open.size() == 1);
        }
      }
      if (i == events_) break;
      const Event event = recorded[i];
      if (event.id >= lives_.size()) continue;
      if (event.kind == EventKind::kAlloc) {
        live[event.address.value()] = event.id;
        if (!open.empty()) found_.of[event.id].module = open.back().module;
        is_in_module_[event.id] = !open.empty() && open.back().module != 0;
      } else if (event.kind == EventKind::kFree) {
        live.erase(event.address.value());
      }
    }
    FinishPhases();
  }

  void Begin(uint64_t at, std::optional<Phase> phase, bool is_pass = false) {
    if (drafts_.back().phase == phase && !is_pass) return;
    if (drafts_.back().begin == at) drafts_.pop_back();
    if (!is_pass && !drafts_.empty() && drafts_.back().phase == phase) return;
    drafts_.push_back({at, phase, is_pass});
  }

  // Phases of a recording without notes, from the stacks of one allocation after the other.

  struct Run {  // of forward() from one line
    StackPhase phase = StackPhase::kForward;
    uint32_t caller = 0;
    uint64_t begin = 0, end = 0;
    Order made;
    std::optional<bool> trains;
  };

  void InferPhases() {
    bool has_frames = false, has_training = false;
    for (AllocationId id = 0; id < lives_.size() && !(has_frames && has_training); ++id) {
      if (!lives_[id].is_made) continue;
      const StackPhase phase = roles_[lives_[id].stack].phase;
      has_frames = has_frames || phase != StackPhase::kEmpty;
      has_training = has_training || phase == StackPhase::kBackward ||
                     phase == StackPhase::kOptimizer || phase == StackPhase::kForward;
    }
    drafts_ = {{0, std::nullopt}};
    if (has_frames) {
      std::vector<Run> runs;
      bool in_run = false;
      for (AllocationId id = 0; id < lives_.size(); ++id) {
        if (!lives_[id].is_made) continue;
        const Life& life = lives_[id];
        StackRole role = roles_[life.stack];
        if (role.phase == StackPhase::kEmpty) {
          role.phase = has_training ? StackPhase::kBackward : StackPhase::kNone;
        }
        switch (role.phase) {
          case StackPhase::kForward:
          case StackPhase::kInference:
            if (!in_run || runs.back().caller != role.caller || runs.back().phase != role.phase ||
                IsNextPass(runs.back(), life)) {
              runs.push_back({role.phase, role.caller, life.begin, life.begin, {}, {}});
              drafts_.push_back({life.begin, Phase::kForward, role.phase == StackPhase::kForward});
            }
            in_run = true;
            runs.back().made.push_back(id);
            runs.back().end = life.begin + 1;
            continue;
          case StackPhase::kBackward: Begin(life.begin, Phase::kBackward); break;
          case StackPhase::kOptimizer: Begin(life.begin, Phase::kOptimizer); break;
          case StackPhase::kLoad: Begin(life.begin, Phase::kLoad); break;
          default:
            if (role.is_loss && drafts_.back().phase == Phase::kForward) continue;
            // What the script does between two ops of backward or of a step runs in another thread.
            if (drafts_.back().phase == Phase::kBackward && !NextIsOutside(id)) break;
            Begin(life.begin, std::nullopt);
        }
        in_run = false;
      }
      JudgeRuns(runs);
    }
    FinishPhases();
  }

  // Returns whether the script has continued after backward, as an allocation of its own code
  // shows.
  bool NextIsOutside(AllocationId id) const {
    return roles_[lives_[id].stack].phase == StackPhase::kNone;
  }

  // Returns whether an allocation is the first of a call from the same line as the run's.
  bool IsNextPass(const Run& run, const Life& next) const {
    return run.made.size() >= kMinPass && next.stack == lives_[run.made.front()].stack &&
           next.stack != lives_[run.made.back()].stack;
  }

  // Returns whether a run keeps what a backward pass would need: at its end a third of what its
  // first half made is live. Without gradients each layer's results are freed when the next has
  // read them. Caches of keys and values, and autocast's of weights, stay in either case.
  bool Keeps(const Run& run) const {
    std::vector<std::pair<uint64_t, bool>> made;  // sizes, and whether they are live at the end
    uint64_t all = 0;
    for (const AllocationId id : run.made) {
      const Life& life = lives_[id];
      const StackRole& role = roles_[life.stack];
      if (role.is_cache || role.is_cast || IsBlasWorkspace(life.size) ||
          IsHalfOfWeight(life.size)) {
        continue;
      }
      made.emplace_back(life.size.value(), life.end >= run.end);
      all += life.size.value();
    }
    uint64_t seen = 0, kept = 0;
    for (const auto& [size, is_live] : made) {
      if (2 * seen >= all) break;
      seen += size;
      if (is_live) kept += size;
    }
    return run.made.size() >= kMinPass && 3 * kept > seen;
  }

  // Decides which runs of forward() save anything for a backward pass that follows.
  void JudgeRuns(std::vector<Run>& runs) {
    std::vector<uint64_t> backwards;
    for (const Draft& draft : drafts_) {
      if (draft.phase == Phase::kBackward) backwards.push_back(draft.begin);
    }
    const auto kept = [&](const Run& run, uint64_t at) {
      uint64_t alive = 0, all = 0;
      for (const AllocationId id : run.made) {
        all += lives_[id].size.value();
        if (at == kNever ? Stays(lives_[id]) : lives_[id].end >= at) {
          alive += lives_[id].size.value();
        }
      }
      return all == 0 ? 0.0 : static_cast<double>(alive) / static_cast<double>(all);
    };
    absl::flat_hash_map<uint32_t, double>
        sure;  // by caller: the minimum that a pass followed by backward keeps
    double least = 1;
    for (size_t i = 0; i < runs.size(); ++i) {
      const auto next = std::lower_bound(backwards.begin(), backwards.end(), runs[i].end);
      if (next == backwards.end()) continue;
      if (i + 1 < runs.size() && runs[i + 1].begin < *next) continue;
      runs[i].trains = runs[i].phase == StackPhase::kForward;
      const double share = kept(runs[i], *next);
      const auto [found, is_new] = sure.try_emplace(runs[i].caller, share);
      if (!is_new) found->second = std::min(found->second, share);
      least = std::min(least, share);
    }
    for (size_t i = 0; i < runs.size(); ++i) {
      Run& run = runs[i];
      if (run.trains) continue;
      if (run.phase == StackPhase::kInference) {
        run.trains = false;
        continue;
      }
      const auto next = std::lower_bound(backwards.begin(), backwards.end(), run.end);
      if (next != backwards.end()) {
        const auto same = sure.find(run.caller);
        run.trains = kept(run, *next) >= 0.5 * (same != sure.end() ? same->second : least) &&
                     kept(run, *next) > 0;
      }
      // Perhaps its backward pass never comes, or only after the end.
      if (!run.trains.value_or(false)) {
        run.trains = run.made.size() < kMinPass ? next == backwards.end() && i + 1 == runs.size() &&
                                                      kept(run, kNever) > 1.0 / 3
                                                : Keeps(run);
      }
    }
    size_t run = 0;
    for (Draft& draft : drafts_) {
      if (draft.phase != Phase::kForward) continue;
      if (!runs[run++].trains.value_or(false)) draft.phase = Phase::kEvaluation;
    }
  }

  // Names what lies between phases, and numbers the steps.
  void FinishPhases() {
    std::vector<Draft> drafts;  // consecutive drafts of the same phase are one
    for (const Draft& draft : drafts_) {
      if (!drafts.empty() && drafts.back().phase == draft.phase &&
          !(draft.is_pass && draft.phase == Phase::kForward)) {
        continue;
      }
      if (!drafts.empty() && drafts.back().begin == draft.begin) drafts.pop_back();
      drafts.push_back(draft);
    }
    const bool has_forward = std::any_of(drafts.begin(), drafts.end(), [](const Draft& draft) {
      return draft.phase == Phase::kForward;
    });
    for (size_t i = 0; i < drafts.size(); ++i) {
      Phase phase = Phase::kOther;
      if (drafts[i].phase) {
        phase = *drafts[i].phase;
      } else {
        // Returns kOther if there is no phase.
        const auto known = [&](size_t draft) {
          return draft < drafts.size() && drafts[draft].phase.has_value() ? *drafts[draft].phase
                                                                          : Phase::kOther;
        };
        const Phase before = i > 0 ? known(i - 1) : Phase::kOther;
        const Phase after = known(i + 1);
        if (after == Phase::kBackward &&
            (before == Phase::kForward || (!has_forward && use_notes_ && i > 0))) {
          phase = Phase::kForward;  // the loss; a compiled model
        } else if (before == Phase::kBackward && after == Phase::kOptimizer) {
          phase = Phase::kOptimizer;  // clipping
        } else if (before == after && before != Phase::kOther && before != Phase::kBackward) {
          phase = before;
        } else if (before == Phase::kForward && after == Phase::kOther) {
          phase = Phase::kForward;
        } else if (i == 0 && drafts.size() > 1 && schedule_.is_cold()) {
          phase = Phase::kLoad;
        }
      }
      if (!found_.phases.empty()) {
        // What lies after a forward pass is its loss.
        if (phase == Phase::kForward && !drafts[i].is_pass && found_.phases.back().phase == phase) {
          continue;
        }
        found_.phases.back().end = drafts[i].begin;
      }
      found_.phases.push_back({drafts[i].begin, events_, phase, 0});
    }
    uint32_t step = 1;
    bool has_gradients = false, is_over = false;
    for (PhaseSpan& span : found_.phases) {
      has_gradients = has_gradients || span.phase == Phase::kBackward;
      if (span.phase == Phase::kOptimizer) {
        is_over = has_gradients;
      } else if (is_over && span.phase != Phase::kOther) {
        ++step;
        has_gradients = span.phase == Phase::kBackward;
        is_over = false;
      }
      span.step = step;
      found_.trains = found_.trains || span.phase == Phase::kBackward;
    }
    for (size_t i = found_.phases.size(); i > 1; --i) {  // what lies before a step is part of it
      if (found_.phases[i - 2].phase == Phase::kOther) {
        found_.phases[i - 2].step = found_.phases[i - 1].step;
      }
    }
  }

  // Finds for each forward pass the event at which one sees what it keeps for backward: where
  // backward begins, or, if hardly anything lives until then, where the pass makes its last
  // allocation; of each other phase its last allocation. Passes that lead to the same backward
  // become one, and so do evaluations in a row.
  void FindPasses() {
    struct Kept {
      uint64_t last = 0, backward = 0;                    // events
      uint64_t at_last = 0, at_backward = 0, at_end = 0;  // bytes that are live then
    };
    const size_t spans = found_.phases.size();
    std::vector<Kept> kept(spans);
    for (size_t i = spans; i-- > 0;) {
      kept[i].backward = i + 1 == spans ? kNever
                         : found_.phases[i + 1].phase == Phase::kBackward
                             ? found_.phases[i + 1].begin
                             : kept[i + 1].backward;
    }
    const auto for_each = [&](auto visit) {
      size_t span = 0;
      for (AllocationId id = 0; id < lives_.size(); ++id) {
        if (!lives_[id].is_made) continue;
        while (span + 1 < spans && found_.phases[span + 1].begin <= lives_[id].begin) ++span;
        visit(lives_[id], kept[span]);
      }
    };
    for_each([](const Life& life, Kept& in) { in.last = life.begin + 1; });
    for_each([](const Life& life, Kept& in) {
      if (life.end >= in.last) in.at_last += life.size.value();
      if (life.end >= in.backward && in.backward != kNever) in.at_backward += life.size.value();
      if (life.end == kNever) in.at_end += life.size.value();
    });
    std::vector<PhaseSpan> joined;
    for (size_t i = 0; i < spans; ++i) {
      const PhaseSpan& span = found_.phases[i];
      const bool is_forward = span.phase == Phase::kForward;
      const uint64_t at =
          is_forward && 2 * kept[i].at_backward > kept[i].at_last ? kept[i].backward : kept[i].last;
      borders_.push_back(span.begin);
      if (!joined.empty() && joined.back().phase == span.phase &&
          (is_forward ? at == kept[i].backward && kept_at_.back() == at
                      : span.phase == Phase::kEvaluation)) {
        joined.back().end = span.end;
      } else {
        joined.push_back(span);
        kept_at_.push_back(at);
        // A pass may also be cut off, by the end of a recording that trains or because memory ran
        // out.
        const bool is_over =
            is_forward && (i + 1 < spans || !found_.trains || 2 * kept[i].at_end < kept[i].at_last);
        joined.back().is_in_vain = is_over && at != kept[i].backward && kept[i].at_last > 0 &&
                                   (cut_ == kNever || cut_ >= span.end);
      }
    }
    found_.phases = std::move(joined);
  }

  // Categories of a recording.

  static bool IsBlasWorkspace(Bytes size) {
    return std::find(std::begin(kBlasWorkspaces), std::end(kBlasWorkspaces), size.value()) !=
           std::end(kBlasWorkspaces);
  }

  void Settle() {
    // The size of a parameter may identify it.
    const auto begun =
        std::find_if(found_.phases.begin(), found_.phases.end(), [](const PhaseSpan& span) {
          return span.phase != Phase::kLoad && span.phase != Phase::kOther;
        });
    const uint64_t loaded = begun == found_.phases.end() ? events_ : begun->begin;
    for (AllocationId id = 0; id < lives_.size(); ++id) {
      const Life& life = lives_[id];
      if (life.begin <= loaded && life.end >= loaded &&
          roles_[life.stack].phase == StackPhase::kLoad) {
        ++parameter_sizes_[life.size.value()];
      } else if (found_.of[id].category == Category::kParameter) {
        ++parameter_sizes_[life.size.value()];
      }
    }
    for (const StartAllocation& start : schedule_.start_allocations()) {
      found_.of[start.id].phase = Phase::kLoad;
      const StackRole& role = roles_[start.stack];
      if (role.is_state) {
        Say(start.id, Category::kOptimizerState, Evidence::kStack);
      } else if (role.phase == StackPhase::kLoad && lives_[start.id].end == kNever) {
        Say(start.id, Category::kParameter, Evidence::kStack);
      } else if (role.is_workspace) {
        Say(start.id, Category::kWorkspace, Evidence::kStack);
      } else if (role.is_cache) {
        Say(start.id, Category::kCache, Evidence::kStack);
      } else if (start.requested_size.value() == kBlasWorkspaces[0] &&
                 role.phase == StackPhase::kEmpty) {
        Say(start.id, Category::kWorkspace, Evidence::kSize);  // hardly anything else has this size
      }
    }
    size_t span = 0;
    for (AllocationId id = 0; id < lives_.size(); ++id) {
      if (!lives_[id].is_made) continue;
      const Life& life = lives_[id];
      while (span + 1 < found_.phases.size() && found_.phases[span + 1].begin <= life.begin) ++span;
      found_.of[id].phase = found_.phases[span].phase;
      found_.of[id].step = found_.phases[span].step;
      SettleOne(id, life, span);
    }
  }

  // Notes the sizes of what may be weights: what a stack loads, and what was there before.
  void FindWeightSizes() {
    for (const Life& life : lives_) {
      if (life.is_start ? life.end == kNever
                        : life.is_made && roles_[life.stack].phase == StackPhase::kLoad) {
        weight_sizes_.insert(life.size.value());
      }
    }
  }
  bool IsHalfOfWeight(Bytes size) const { return weight_sizes_.contains(2 * size.value()); }

  // Returns whether autocast may have made an allocation as a copy of a weight in 16 bits: its
  // frame is on the stack, or the call of a product makes its result after it, of the same stack
  // and in the same module. Workspaces, which stay or are freed at once, are no results.
  bool MayBeCopy(AllocationId id, const Life& life) const {
    constexpr size_t kMaxOfCall = 16;
    if (roles_[life.stack].is_cast) return IsHalfOfWeight(life.size);
    if (!roles_[life.stack].is_linear || !parameter_sizes_.contains(2 * life.size.value())) {
      return false;
    }
    const size_t end = std::min(lives_.size(), id + 1 + kMaxOfCall);
    for (size_t next = id + 1; next < end; ++next) {
      const Life& after = lives_[next];
      if (!after.is_made || IsBlasWorkspace(after.size) || after.end <= after.begin + 2) continue;
      return after.stack == life.stack && found_.of[next].module == found_.of[id].module;
    }
    return false;
  }

  void SettleOne(AllocationId id, const Life& life, size_t span) {
    const StackRole& role = roles_[life.stack];
    const PhaseSpan& phase = found_.phases[span];
    const bool outlives = life.end >= phase.end;
    if (role.is_workspace || IsLastingWorkspace(role, life)) {
      Say(id, Category::kWorkspace, role.is_workspace ? Evidence::kStack : Evidence::kSize);
    } else if (role.is_communication && role.phase != StackPhase::kLoad) {
      Say(id, Category::kCommunication, Evidence::kStack);
    } else if (role.is_cache && role.caller == 0) {  // a server frees it when it ends
      Say(id, Category::kCache, Evidence::kStack);
    } else if (role.is_state && outlives) {
      Say(id, Category::kOptimizerState, Evidence::kStack);
    } else if (role.is_cast && MayBeCopy(id, life)) {
      Say(id, Category::kCopy, Evidence::kStack);
    } else if (phase.phase == Phase::kForward) {
      SettleForward(id, life, span);
    } else if (phase.phase == Phase::kBackward) {
      SettleBackward(id, life, span);
    } else if (role.is_cache && phase.phase != Phase::kOptimizer &&
               (outlives || phase.phase == Phase::kEvaluation)) {
      Say(id, Category::kCache, Evidence::kStack);
    } else if (phase.phase == Phase::kEvaluation && OutlivesPass(life) && MayBeCopy(id, life)) {
      Say(id, Category::kCopy, Evidence::kSize);
    } else if (!outlives) {
      Say(id, Category::kTemporary, Evidence::kLifetime);
    } else if (role.phase == StackPhase::kLoad &&
               (phase.phase == Phase::kLoad || phase.phase == Phase::kOther)) {
      Say(id, Category::kParameter, Evidence::kStack);
    } else if (phase.phase == Phase::kOther && role.phase == StackPhase::kNone &&
               IsFreedByBackward(life)) {
      Say(id, Category::kActivation, Evidence::kLifetime);
    } else if (phase.phase == Phase::kOther && IsInputOf(role, life, span)) {
      Say(id, Category::kInput, Evidence::kLifetime);
    }
  }

  bool OutlivesPass(const Life& life) const {
    const auto next = std::upper_bound(borders_.begin(), borders_.end(), life.begin);
    return life.end >= (next == borders_.end() ? events_ : *next);
  }

  static bool IsLastingWorkspace(const StackRole& role, const Life& life) {
    return IsBlasWorkspace(life.size) && life.end == kNever &&
           (role.is_linear || role.phase == StackPhase::kEmpty ||
            role.phase == StackPhase::kForward || role.phase == StackPhase::kInference);
  }

  // Whether it is made between two phases for the second, which computes.
  bool IsInputOf(const StackRole& role, const Life& life, size_t span) const {
    if (role.phase != StackPhase::kNone || life.end == kNever) return false;
    if (span + 1 >= found_.phases.size()) return false;
    const Phase next = found_.phases[span + 1].phase;
    return next == Phase::kForward || next == Phase::kEvaluation;
  }

  void SettleForward(AllocationId id, const Life& life, size_t span) {
    const StackRole& role = roles_[life.stack];
    const bool is_kept = life.end >= kept_at_[span];
    if (role.is_loss) SayWhatALossReads(id, life);
    if (role.is_cache && is_kept) {
      Say(id, Category::kCache, Evidence::kStack);
    } else if (role.is_gradient && is_kept) {
      Say(id, Category::kGradient, Evidence::kStack);
    } else if (role.is_loss && is_kept) {
      Say(id, Category::kLogits, Evidence::kStack);
    } else if (is_kept && MayBeCopy(id, life)) {
      Say(id, Category::kCopy, Evidence::kSize);
    } else if (is_kept && role.phase == StackPhase::kNone && !found_.is_noted &&
               !IsFreedByBackward(life)) {
      Say(id, Category::kUnknown, Evidence::kNone);
    } else {
      Say(id, is_kept ? Category::kActivation : Category::kTemporary, Evidence::kLifetime);
    }
  }

  void SettleBackward(AllocationId id, const Life& life, size_t span) {
    if (roles_[life.stack].is_gradient) {
      Say(id, Category::kGradient, Evidence::kStack);
    } else if (life.end < found_.phases[span].end) {
      Say(id,
          roles_[life.stack].is_recomputed || is_in_module(id) ? Category::kActivation
                                                               : Category::kTemporary,
          Evidence::kLifetime);
    } else if (!use_notes_ &&
               (parameter_sizes_.empty() || parameter_sizes_.contains(life.size.value()))) {
      Say(id, Category::kGradient,
          parameter_sizes_.empty() ? Evidence::kLifetime : Evidence::kSize);
    } else if (life.end < NextPhaseEnd(span)) {
      Say(id, Category::kTemporary, Evidence::kLifetime);
    }
  }

  // Names the last product before a loss that has the size of what the loss makes of it, in the
  // same or another type.
  void SayWhatALossReads(AllocationId loss_id, const Life& loss) {
    if (loss.size.value() < 4096) return;
    size_t seen = 0;
    for (AllocationId id = loss_id; id-- > 0 && seen < 8;) {
      if (!lives_[id].is_made) continue;
      ++seen;
      const Life& life = lives_[id];
      const uint64_t size = life.size.value(), made = loss.size.value();
      if (life.end < loss.begin || !roles_[life.stack].is_linear ||
          (size != made && 2 * size != made && size != 2 * made)) {
        continue;
      }
      if (found_.of[id].evidence != Evidence::kNoted) {
        found_.of[id].category = Category::kLogits;
        found_.of[id].evidence = Evidence::kSize;
      }
      return;
    }
  }

  size_t SpanAt(uint64_t event) const {
    const auto after =
        std::upper_bound(found_.phases.begin(), found_.phases.end(), event,
                         [](uint64_t at, const PhaseSpan& span) { return at < span.begin; });
    return static_cast<size_t>(after - found_.phases.begin()) - 1;
  }
  // Returns whether autograd freed it, before the last allocation of its pass: meanwhile the script
  // waits.
  bool IsFreedByBackward(const Life& life) const {
    if (life.end == kNever) return false;
    const size_t span = SpanAt(life.end);
    return found_.phases[span].phase == Phase::kBackward &&
           life.begin < found_.phases[span].begin && life.end < kept_at_[span];
  }
  uint64_t NextPhaseEnd(size_t span) const {
    return span + 1 < found_.phases.size() ? found_.phases[span + 1].end : events_;
  }
  bool is_in_module(AllocationId id) const {
    return id < is_in_module_.size() && is_in_module_[id];
  }

  // Pairs allocations by size. A parameter has its gradient's size, and so do Adam's two moments;
  // how often a size occurs distinguishes those that existed before the recording and stay.
  void PairSizes() {
    absl::flat_hash_map<uint64_t, uint64_t> gradients;  // of one step
    std::map<uint32_t, std::map<uint64_t, uint64_t>> by_step;
    for (AllocationId id = 0; id < lives_.size(); ++id) {
      if (!lives_[id].is_made) continue;
      if (found_.of[id].category == Category::kGradient) {
        ++by_step[found_.of[id].step][lives_[id].size.value()];
      }
    }
    for (const auto& [step, sizes] : by_step) {
      for (const auto& [size, count] : sizes) gradients[size] = std::max(gradients[size], count);
    }
    if (gradients.empty()) return;
    absl::flat_hash_map<uint64_t, uint64_t> parameters, states;
    for (AllocationId id = 0; id < lives_.size(); ++id) {
      if (found_.of[id].category == Category::kParameter) ++parameters[lives_[id].size.value()];
      if (found_.of[id].category == Category::kOptimizerState) ++states[lives_[id].size.value()];
    }
    // The allocations by size of which nothing else is known and that stay. There must be one or
    // two for each parameter, or they are no evidence.
    std::map<uint64_t, Order> staying;
    for (AllocationId id = 0; id < lives_.size(); ++id) {
      const uint64_t size = lives_[id].size.value();
      if (found_.of[id].category == Category::kUnknown && lives_[id].end == kNever &&
          gradients.contains(size)) {
        staying[size].push_back(id);
      }
    }
    for (auto& [size, ids] : staying) {
      // Parameters are older than their optimizer's state.
      std::sort(ids.begin(), ids.end(), [&](AllocationId a, AllocationId b) {
        const auto age = [&](AllocationId id) {
          return std::make_tuple(!lives_[id].is_start, lives_[id].begin, id);
        };
        return age(a) < age(b);
      });
      const uint64_t each = gradients[size];
      const uint64_t missing = each - std::min(each, parameters[size]);
      const uint64_t more = ids.size() - std::min<uint64_t>(ids.size(), missing);
      if (ids.size() < missing) continue;
      const bool are_moments = states[size] == 0 && (more == each || more == 2 * each);
      for (size_t i = 0; i < ids.size(); ++i) {
        if (i < missing) {
          Say(ids[i], Category::kParameter, Evidence::kSize);
        } else if (are_moments) {
          Say(ids[i], Category::kOptimizerState, Evidence::kSize);
        }
      }
      // An optimizer may make its state anew in each step; what it frees then was the state before.
      if (!are_moments) continue;
      for (const StartAllocation& start : schedule_.start_allocations()) {
        const Life& life = lives_[start.id];
        if (life.size.value() == size && life.end != kNever &&
            found_.phases[SpanAt(life.end)].phase == Phase::kOptimizer) {
          Say(start.id, Category::kOptimizerState, Evidence::kSize);
        }
      }
    }
  }

  const Schedule& schedule_;
  const Trace& trace_;
  const std::vector<MemoryNote>& notes_;
  const bool use_notes_;
  uint64_t events_ = 0;
  uint32_t cut_ = kNever;    // where memory ran out for the last time
  std::vector<Life> lives_;  // by id; ids are in the order of allocation
  std::vector<StackRole> roles_;
  std::vector<Draft> drafts_;
  std::vector<uint64_t> borders_;  // where phases begin, evaluations in a row each
  std::vector<uint64_t> kept_at_;  // by phase: an event (FindPasses)
  absl::flat_hash_map<std::string, size_t> module_numbers_;
  std::vector<bool> is_in_module_;                           // by id, if there are notes
  absl::flat_hash_map<uint64_t, uint64_t> parameter_sizes_;  // and their numbers
  absl::flat_hash_set<uint64_t> weight_sizes_;
  Meanings found_;
};

}  // namespace

Meanings FindMeanings(const Schedule& schedule, bool use_notes) {
  return MeaningFinder(schedule, use_notes).Find();
}

}  // namespace memreplay
