// How much memory each phase of a schedule needs at its peak, and for what. The schedule marks its
// phases, and the tag of an allocation says what it is for.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "sim/model/observer.h"
#include "sim/observe/usage.h"
#include "trace/value/event.h"
#include "trace/value/trace.h"
#include "trace/value/units.h"

namespace memreplay {

// The peaks within one phase.
struct PhasePeak {
  std::string phase;  // "" before the first mark
  Bytes allocated;
  Bytes reserved;                       // its own peak, perhaps at another moment
  std::map<std::string, Bytes> by_tag;  // at the peak of allocated memory; adds up to it
};

// The first request that ran out of memory.
struct PhaseOom {
  std::string phase;
  std::string label;  // the last kLabel of the phase; "" if it had none
  std::string name;   // of the allocation
  Bytes size;         // rounded
  Bytes allocated;    // at that moment, after PyTorch had released what it could
  Bytes reserved;
};

// An observer that finds the peaks of each phase. It stops at the first out of memory, since a
// training run ends there. O(1) per event, O(tags) per new peak.
class PhaseUsage final : public Observer {
 public:
  // `trace` contains tags and names; it must outlive the observer.
  explicit PhaseUsage(const Trace& trace) : trace_(trace) { phases_.emplace_back(); }

  void OnEvent(const Event& event) override;

  // Returns the phases in the order of their marks, without the part before the first one if it has
  // no events.
  std::vector<PhasePeak> phases() const;
  const std::optional<PhaseOom>& oom() const { return oom_; }
  // Returns the phase with the highest allocated peak.
  const PhasePeak& highest() const;
  Bytes peak_reserved() const { return usage_.peak().reserved(); }

 private:
  struct Live {
    uint32_t tag;  // string index
    Bytes block;
  };
  // Returns the innermost frame of an allocation, whose file name is the tag.
  const Frame* FrameOf(const Event& event) const;
  std::map<std::string, Bytes> LiveByTag() const;
  void OnMark(const Event& event);

  const Trace& trace_;
  UsageObserver usage_;
  absl::flat_hash_map<AllocationId, Live> live_;
  std::map<uint32_t, Bytes> by_tag_;
  std::vector<PhasePeak> phases_;
  std::string label_;
  std::optional<PhaseOom> oom_;
};

}  // namespace memreplay
