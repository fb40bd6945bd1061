// How much memory each phase of a program needs at its peak, and for what. Phases
// are those that the program marks; what for is the tag of each allocation.
#ifndef MEMREPLAY_SIM_OBSERVE_PHASE_USAGE_H_
#define MEMREPLAY_SIM_OBSERVE_PHASE_USAGE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
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
  Bytes reserved;                       // its own peak, at another moment maybe
  std::map<std::string, Bytes> by_tag;  // where allocated peaks; adds up to it
};

// The first request that no memory was found for.
struct PhaseOom {
  std::string phase;
  std::string label;  // the last kLabel of the phase; "" if it had none
  std::string name;   // of the allocation
  Bytes size;         // rounded
  Bytes allocated;    // at that moment, after PyTorch released what it could
  Bytes reserved;
};

// Stops at the first out of memory: a training run dies there. O(1) per event,
// O(tags) per new peak.
class PhaseUsage final : public Observer {
 public:
  // Tags and names are looked up in `trace`, which must outlive the observer.
  explicit PhaseUsage(const Trace& trace) : trace_(trace) { phases_.emplace_back(); }

  void OnEvent(const Event& event) override;

  // In the order of their marks; without the part before the first one if
  // nothing happened there.
  std::vector<PhasePeak> phases() const;
  const std::optional<PhaseOom>& oom() const { return oom_; }
  // The phase with the highest allocated peak.
  const PhasePeak& highest() const;
  Bytes peak_reserved() const { return usage_.peak().reserved(); }

 private:
  struct Live {
    uint32_t tag;  // string index
    Bytes block;
  };
  // The innermost frame of an allocation: its file name is the tag.
  const Frame* FrameOf(const Event& event) const;
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

#endif  // MEMREPLAY_SIM_OBSERVE_PHASE_USAGE_H_
