// What an allocator decided in a run, in a form in which runs on devices that place memory
// differently can be compared.
#pragma once

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

// An entry of PyTorch's trace with its segment and offset instead of an address. An oom has no
// place, and its free bytes are no decision.
struct Decision {
  Event event;
  uint32_t request = 0;  // position in Schedule::requests()
  Place place;
};

enum class DecisionScope : uint8_t {
  kAll,
  // Without segments and places, because the pools of two drivers differ.
  kRequests,
};

// Returns whether kind, size, extent, stream, pool and id agree, and with kAll the place.
bool SameDecision(const Decision& a, const Decision& b, DecisionScope scope);

// An observer that keeps the decisions of a run. O(log regions) per event.
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

// Where two runs diverge.
struct DecisionDifference {
  uint32_t request = 0;
  std::optional<Decision> predicted;  // absent: the other has one more
  std::optional<Decision> measured;
};

// How the decisions of two runs compare.
struct DecisionComparison {
  uint64_t compared = 0;  // the larger number of the two, added up over requests
  uint64_t equal = 0;
  std::optional<DecisionDifference> first;
  bool all_equal() const { return equal == compared; }
};

// Compares two runs request by request: one decision too many or too few does not affect the next
// request. O(decisions).
DecisionComparison CompareDecisions(absl::Span<const Decision> predicted,
                                    absl::Span<const Decision> measured, DecisionScope scope);

// Returns a description such as "alloc of 512 bytes on stream 0 in segment 3 at 1,024".
std::string DescribeDecision(const Decision& decision);

}  // namespace memreplay
