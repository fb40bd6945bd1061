#include "trace/program/program_check.h"

#include <algorithm>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "trace/program/program_expander.h"
#include "trace/value/status_macros.h"
#include "trace/value/strings.h"

namespace memreplay::program {
namespace {

class Checker {
 public:
  explicit Checker(const ProgramCode& code) : expander_(&code, &strings_, &stacks_) {}

  absl::StatusOr<proto::ProgramCheck> Check() {
    Event event;
    while (expander_.Next(&event)) OnEvent(event);
    RETURN_IF_ERROR(expander_.status());
    check_.set_events(expander_.events());
    for (size_t kind = 0; kind < std::size(by_kind_); ++kind) {
      if (by_kind_[kind] == 0) continue;
      (*check_.mutable_events_by_kind())[std::string(EventKindName(static_cast<EventKind>(kind)))] =
          by_kind_[kind];
    }
    expander_.VisitLive([this](const ProgramExpander::Live& live) {
      proto::PhaseCheck& phase = Phase(live.phase);
      phase.set_leaks(phase.leaks() + 1);
      phase.set_leaked_bytes(phase.leaked_bytes() + live.size.value());
    });
    check_.set_peak_requested(peak_.value());
    check_.set_peak_phase(std::string(strings_[peak_phase_]));
    return std::move(check_);
  }

 private:
  proto::PhaseCheck& Phase(uint32_t text) {
    const auto [it, is_new] = phases_.try_emplace(text, check_.phases_size());
    if (is_new) check_.add_phases()->set_phase(std::string(strings_[text]));
    return *check_.mutable_phases(it->second);
  }

  void OnEvent(const Event& event) {
    ++by_kind_[static_cast<size_t>(event.kind)];
    const uint64_t handle = event.address.value();
    if (event.kind == EventKind::kAlloc) {
      sizes_[handle] = event.size;
      live_ += event.size;
    } else if (event.kind == EventKind::kFree) {
      const auto it = sizes_.find(handle);
      live_ -= it->second;
      sizes_.erase(it);
    } else if (event.is_mark(MarkKind::kPhase)) {
      phase_ = event.text_or_stack;
      current_ = nullptr;
    }
    if (current_ == nullptr) current_ = &Phase(phase_);
    current_->set_events(current_->events() + 1);
    current_->set_peak_requested(std::max(current_->peak_requested(), live_.value()));
    if (live_ > peak_) {
      peak_ = live_;
      peak_phase_ = phase_;
    }
  }

  StringTable strings_;
  StackTable stacks_;
  ProgramExpander expander_;
  proto::ProgramCheck check_;
  uint64_t by_kind_[256] = {};                 // EventKind
  absl::flat_hash_map<uint32_t, int> phases_;  // index in check_.phases by text
  uint32_t phase_ = kNoText;
  proto::PhaseCheck* current_ = nullptr;
  absl::flat_hash_map<uint64_t, Bytes> sizes_;
  Bytes live_;
  Bytes peak_;
  uint32_t peak_phase_ = kNoText;
};

}  // namespace

absl::StatusOr<proto::ProgramCheck> CheckProgram(const ProgramCode& code) {
  return Checker(code).Check();
}

}  // namespace memreplay::program
