// Settings that changed during a recording (hypotheses.h).

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "sim/recording/hypotheses.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

// Limits of the search.
constexpr size_t kMaxSettingsReplays = 300;
constexpr size_t kMaxSettingsEvents = 20'000'000;
constexpr size_t kMaxChanges = 6;
// Events that a change must explain. Where addresses are made up, any change explains a few.
constexpr uint64_t kMinStretch = 32;

// A text that is assumed to have been set before a position in the events.
struct GuessedChange {
  uint64_t event = 0;
  std::string text;
};

struct SettingsGuess {
  std::vector<GuessedChange> changes;  // ascending
  RecordingFollowed followed;
};

// The tables are not copied by accident; here they are.
Trace CopyOf(const Trace& trace) {
  // Fails to compile if a member is added.
  const auto& [format, is_program, devices, streams, pools, strings, stacks, settings,
               torch_version, addresses_ascend, ended, layout, annotations, diagnostics,
               total_memory, memory_fraction, completion, program_header] = trace;
  Trace copy{.format = format,
             .is_program = is_program,
             .devices = devices,
             .streams = streams,
             .pools = pools,
             .strings = {},
             .stacks = {},
             .settings = settings,
             .torch_version = torch_version,
             .addresses_ascend = addresses_ascend,
             .ended = ended,
             .layout = layout,
             .annotations = annotations,
             .diagnostics = diagnostics,
             .total_memory = total_memory,
             .memory_fraction = memory_fraction,
             .completion = completion,
             .program_header = program_header};
  // Interned in the same order, each has the same index.
  for (uint32_t i = 0; i < strings.size(); ++i) copy.strings.Intern(strings[i]);
  for (uint32_t i = 0; i < stacks.frame_count(); ++i) copy.stacks.InternFrame(stacks.frame(i));
  for (uint32_t i = 0; i < stacks.size(); ++i) copy.stacks.InternStack(stacks[i]);
  return copy;
}

bool SameValues(AllocatorConfig a, const AllocatorConfig& b) {
  a.conf = b.conf;
  a.backend_loaded = b.backend_loaded;
  return a == b;
}

std::string With(std::string_view conf, std::string_view setting) {
  return StrCat(conf, conf.empty() ? "" : ",", setting);
}

class SettingsSearch {
 public:
  explicit SettingsSearch(const Unexplained& device)
      : plain_(device.schedule),
        listed_(device.config),
        profile_(device.profile),
        places_(plain_.recorded_begin().begin(), plain_.recorded_begin().end()) {
    places_.erase(std::unique(places_.begin(), places_.end()), places_.end());
  }

  // Extends the guess that follows the recording furthest. Returns the exact one or, if none is and
  // pools that are gone may explain the rest, the furthest; nullopt if no change gets further.
  std::optional<SettingsGuess> Run(const RecordingFollowed& without) {
    const std::optional<AllocatorConfig> parsed = After({}, /*at_start=*/false);
    if (!parsed.has_value() || !SameValues(*parsed, listed_)) return std::nullopt;
    if (places_.empty()) return std::nullopt;
    std::vector<SettingsGuess> open = {{{}, without}};
    std::optional<SettingsGuess> furthest;
    while (!open.empty() && !is_spent()) {
      const auto best =
          std::max_element(open.begin(), open.end(), [](const auto& a, const auto& b) {
            return a.followed.until_event < b.followed.until_event;
          });
      const SettingsGuess base = std::move(*best);
      open.erase(best);
      if (base.changes.size() == kMaxChanges) continue;
      for (SettingsGuess& next : Further(base)) {
        if (next.followed.exact) return std::move(next);
        if (!furthest.has_value() || next.followed.until_event > furthest->followed.until_event) {
          furthest = next;
        }
        open.push_back(std::move(next));
      }
    }
    if (!furthest.has_value() || !MayHaveGonePools(plain_.trace())) return std::nullopt;
    furthest = RestoredEarly(*furthest);
    if (!Restore(&*furthest)) return std::nullopt;
    return furthest;
  }

  // Returns a copy of the trace with notes of these changes, which the search must not use again.
  std::shared_ptr<const Trace> Noted(const std::vector<GuessedChange>& changes) {
    if (noted_ == nullptr) noted_ = std::make_shared<Trace>(CopyOf(plain_.trace()));
    std::vector<MemoryNote> notes;
    const auto add = [&](uint64_t event, std::string_view text) {
      notes.push_back({NoteKind::kSettings, noted_->strings.Intern(text), event, Address()});
    };
    add(0, listed_.conf);
    for (const GuessedChange& change : changes) add(change.event, change.text);
    const std::vector<MemoryNote>& own = plain_.device_trace().notes;
    notes.insert(notes.end(), own.begin(), own.end());
    std::stable_sort(notes.begin(), notes.end(),
                     [](const MemoryNote& a, const MemoryNote& b) { return a.event < b.event; });
    noted_->devices[plain_.device_index()].notes = std::move(notes);
    return noted_;
  }

  // Returns the settings after all changes, or after those before the first event; nullopt if
  // PyTorch rejects one.
  std::optional<AllocatorConfig> After(const std::vector<GuessedChange>& changes,
                                       bool at_start) const {
    AllocatorConfig config;
    if (!ParseAllocatorConf(listed_.conf, profile_, &config).ok()) return std::nullopt;
    for (const GuessedChange& change : changes) {
      if (at_start && change.event > 0) break;
      if (!ParseAllocatorConf(change.text, profile_, &config).ok()) return std::nullopt;
    }
    return config;
  }

 private:
  size_t event_count() const { return plain_.device_trace().events.size(); }
  bool is_spent() const {
    return replays_ >= kMaxSettingsReplays || replayed_events_ >= kMaxSettingsEvents;
  }

  // Returns nullopt if PyTorch rejects a text.
  std::optional<SettingsGuess> Try(std::vector<GuessedChange> changes) {
    const std::optional<AllocatorConfig> start = After(changes, /*at_start=*/true);
    if (!start.has_value() || !After(changes, /*at_start=*/false).has_value()) return std::nullopt;
    SettingsGuess guess;
    if (std::all_of(changes.begin(), changes.end(),
                    [](const GuessedChange& change) { return change.event == 0; })) {
      guess.followed = FollowRecording(plain_, *start, profile_);
    } else {
      const Schedule schedule = Schedule::Build(Noted(changes), plain_.device_index());
      guess.followed = FollowRecording(schedule, *start, profile_);
      replayed_events_ += event_count() / 8;
    }
    guess.changes = std::move(changes);
    ++replays_;
    replayed_events_ += guess.followed.until_event;
    if (guess.followed.exact) guess.followed.exact = Restore(&guess);
    return guess;
  }

  // Returns the guess with a change to what the file lists at the earliest place after which it
  // follows the recording as far as `base`.
  SettingsGuess RestoredEarly(const SettingsGuess& base) {
    const std::optional<AllocatorConfig> now = After(base.changes, /*at_start=*/false);
    if (!now.has_value() || SameValues(*now, listed_)) return base;
    SettingsGuess best = base;
    auto low = std::lower_bound(places_.begin(), places_.end(), base.changes.back().event);
    auto high = std::upper_bound(low, places_.end(), base.followed.until_event);
    while (low < high) {
      const auto middle = low + (high - low) / 2;
      std::vector<GuessedChange> changes = base.changes;
      changes.push_back({*middle, Restoring(*now)});
      std::optional<SettingsGuess> tried = Try(std::move(changes));
      if (tried.has_value() && tried->followed.until_event >= base.followed.until_event) {
        best = *std::move(tried);
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    return best;
  }

  // Lets the last settings be those that the file lists. Returns whether they can be.
  bool Restore(SettingsGuess* guess) const {
    std::optional<AllocatorConfig> end = After(guess->changes, /*at_start=*/false);
    if (end.has_value() && !SameValues(*end, listed_)) {
      guess->changes.push_back({event_count(), Restoring(*end)});
      end = After(guess->changes, /*at_start=*/false);
    }
    return end.has_value() && SameValues(*end, listed_);
  }

  // Returns the text that sets what the file lists; those from before stay on if not named.
  std::string Restoring(const AllocatorConfig& before) const {
    if (before.expandable_segments == listed_.expandable_segments) return listed_.conf;
    return With(listed_.conf,
                StrCat("expandable_segments:", listed_.expandable_segments ? "True" : "False"));
  }

  // Returns what may have been set where a guess leaves the recording, the likeliest first.
  std::vector<std::string> Texts(const SettingsGuess& base) const {
    std::vector<std::string> texts;
    const AllocatorConfig now = After(base.changes, /*at_start=*/false).value_or(listed_);
    const bool is_listed = SameValues(now, listed_);
    if (!is_listed) texts.push_back(Restoring(now));
    std::vector<uint64_t> splits = {20};
    const auto& divergence = base.followed.divergence;
    if (divergence.has_value()) {
      for (const std::optional<Event>* event : {&divergence->recorded, &divergence->simulated}) {
        if (event->has_value()) splits.push_back((*event)->size / MiB(1) + 1);
      }
    }
    splits.insert(splits.end(), {32, 64, 128, 256, 512, 1024});
    for (const bool expandable : {true, false}) {
      if (expandable == now.expandable_segments) continue;
      texts.push_back(
          With(listed_.conf, StrCat("expandable_segments:", expandable ? "True" : "False")));
    }
    for (const uint64_t split : splits) {
      if (split >= 20) texts.push_back(With(listed_.conf, StrCat("max_split_size_mb:", split)));
    }
    for (const int divisions : {2, 4, 8, 16}) {
      texts.push_back(With(listed_.conf, StrCat("roundup_power2_divisions:", divisions)));
    }
    if (!listed_.conf.empty()) texts.emplace_back();
    return texts;
  }

  // Returns the guesses with another change that get further than `base`; an exact one is the last.
  std::vector<SettingsGuess> Further(const SettingsGuess& base) {
    std::vector<SettingsGuess> found;
    const uint64_t until = base.followed.until_event;
    const uint64_t since = base.changes.empty() ? 0 : base.changes.back().event;
    const auto first = std::lower_bound(places_.begin(), places_.end(), since);
    auto last = std::upper_bound(places_.begin(), places_.end(), until);
    if (first == places_.end() || last <= first) return found;
    --last;
    for (const std::string& text : Texts(base)) {
      std::optional<SettingsGuess> best;
      // Whether a place made a difference to how far the replay follows. Where it follows every
      // event and only final blocks differ, that cannot be told.
      bool matters = until == event_count();
      // Returns whether the settings do not explain what follows this place.
      const auto is_early = [&](uint64_t place) {
        std::vector<GuessedChange> changes = base.changes;
        changes.push_back({place, text});
        std::optional<SettingsGuess> tried = Try(std::move(changes));
        if (!tried.has_value()) return true;
        const bool early = tried->followed.until_event < until && !tried->followed.exact;
        const bool better =
            tried->followed.exact ||
            (tried->followed.until_event >= until + kMinStretch &&
             (!best.has_value() || tried->followed.until_event > best->followed.until_event));
        matters |= tried->followed.exact || tried->followed.until_event != until;
        if (better) best = std::move(tried);
        return early;
      };
      const auto is_done = [&] { return is_spent() || (best.has_value() && best->followed.exact); };
      bool may_be_right = !is_early(*last) && !is_done();
      if (may_be_right && !matters) {
        // Settings that make no difference, whether set last or first, are taken to make none in
        // between.
        is_early(*first);
        may_be_right = matters && !is_done();
      }
      if (may_be_right) {
        // The earliest place that is not too early. Between it and the last one is the right one.
        auto low = first;
        auto high = last;
        while (low < high && !is_done()) {
          const auto middle = low + (high - low) / 2;
          if (is_early(*middle)) {
            low = middle + 1;
          } else {
            high = middle;
          }
        }
      }
      const bool exact = best.has_value() && best->followed.exact;
      if (best.has_value()) found.push_back(*std::move(best));
      if (exact || is_spent()) break;
    }
    return found;
  }

  const Schedule& plain_;          // without changes
  const AllocatorConfig& listed_;  // in the file
  const TorchProfile& profile_;
  std::vector<uint64_t> places_;  // where requests begin
  std::shared_ptr<Trace> noted_;  // null until a change after the first event is tried
  size_t replays_ = 0;
  size_t replayed_events_ = 0;
};

std::string NoteOn(const std::vector<GuessedChange>& changes) {
  std::string text = "it is assumed that the script changed the allocator's settings";
  for (size_t i = 0; i < changes.size(); ++i) {
    absl::StrAppend(&text, i == 0 ? " at event " : ", at event ", changes[i].event, " to ",
                    changes[i].text.empty() ? "the defaults" : changes[i].text);
  }
  absl::StrAppend(&text,
                  ": the file does not say so, but with these changes the replay follows "
                  "every event (other texts and places may do so, too)");
  return text;
}

}  // namespace

bool MayHaveChangedSettings(const Trace& trace) {
  if (trace.is_program) return false;
  size_t with_events = 0;
  for (const DeviceTrace& device : trace.devices) {
    with_events += device.events.empty() ? 0 : 1;
    if (std::any_of(device.notes.begin(), device.notes.end(),
                    [](const MemoryNote& note) { return note.kind == NoteKind::kSettings; })) {
      return false;
    }
  }
  return with_events == 1;
}

std::optional<Explanation> FindChangedSettings(const Unexplained& device) {
  const RecordingFollowed& without = device.followed;
  const Schedule& plain = device.schedule;
  if (without.exact || plain.device_trace().events.size() > kMaxSettingsEvents) {
    return std::nullopt;
  }
  // Where not even the first event fits the state before it, addresses are not the allocator's.
  if (without.until_event == 0 && !plain.is_cold()) return std::nullopt;
  SettingsSearch search(device);
  const std::optional<SettingsGuess> guess = search.Run(without);
  if (!guess.has_value()) return std::nullopt;
  Explanation found{.trace = search.Noted(guess->changes),
                    .config = search.After(guess->changes, /*at_start=*/true)};
  if (!guess->followed.exact) {
    std::optional<Explanation> gone = FindGonePools(
        {found.trace, device.device, plain, *found.config, device.profile, guess->followed});
    if (!gone.has_value()) return std::nullopt;
    found.pools = std::move(gone->pools);
    found.notes = std::move(gone->notes);
  }
  found.notes.push_back(NoteOn(guess->changes));
  return found;
}

}  // namespace memreplay
