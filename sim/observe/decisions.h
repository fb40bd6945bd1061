// What an allocator decided in a run, in a form in which runs on devices that
// place memory differently can be compared.
#ifndef MEMREPLAY_SIM_OBSERVE_DECISIONS_H_
#define MEMREPLAY_SIM_OBSERVE_DECISIONS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "sim/device/watched_device.h"
#include "sim/model/observer.h"
#include "trace/value/event.h"

namespace memreplay {

// An entry of PyTorch's trace, and where it lies: segment and offset instead of an
// address. An oom has no place; its free bytes are no decision.
struct Decision {
  Event event;
  uint32_t request = 0;  // position in Schedule::requests()
  Place place;
};

enum class DecisionScope : uint8_t {
  kAll,
  // Without segments and places: the pools of two drivers are their own affair.
  kRequests,
};

// Kind, size, extent, stream, pool and id agree, and with kAll the place.
bool SameDecision(const Decision& a, const Decision& b, DecisionScope scope);

// Keeps the decisions of a run. O(log regions) per event.
class DecisionLog final : public Observer {
 public:
  // `device` is the one that the allocator uses; it must outlive this.
  explicit DecisionLog(const WatchedDevice& device) : device_(device) {}

  void OnRequest(size_t request) override { request_ = static_cast<uint32_t>(request); }
  void OnEvent(const Event& event) override;

  std::vector<Decision> Take() { return std::move(decisions_); }

 private:
  const WatchedDevice& device_;
  uint32_t request_ = 0;
  std::vector<Decision> decisions_;
};

// Where two runs part.
struct Parting {
  uint32_t request = 0;
  std::optional<Decision> predicted;  // absent: the other had one more
  std::optional<Decision> measured;
};

// How the decisions of two runs compare.
struct DecisionComparison {
  uint64_t compared = 0;  // the more of the two, request by request
  uint64_t equal = 0;
  std::optional<Parting> first;
  bool all_equal() const { return equal == compared; }
};

// Request by request: one decision too many or too few is not carried over into
// the next. O(decisions).
DecisionComparison CompareDecisions(absl::Span<const Decision> predicted,
                                    absl::Span<const Decision> measured, DecisionScope scope);

// "alloc of 512 bytes on stream 0 in segment 3 at 1,024".
std::string DescribeDecision(const Decision& decision);

}  // namespace memreplay

#endif  // MEMREPLAY_SIM_OBSERVE_DECISIONS_H_
