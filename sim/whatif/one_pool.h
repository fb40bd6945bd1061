// Answers what would happen if all private pools were one.
#pragma once

#include <cstdint>

#include "sim/run/run.h"
#include "trace/schedule/schedule.h"

namespace memreplay {

// An intervention that makes all requests of private pools in the first of them, as if CUDA graphs
// had been captured with one graph_pool_handle(). It is for cold schedules: blocks of a start keep
// their pool.
class OnePool final : public Intervention {
 public:
  explicit OnePool(const Schedule& schedule) : schedule_(schedule) {}
  Next BeforeRequest(size_t request, Allocator& allocator, Observer& observer) override;

  // Returns a request as it is made in the one pool.
  Event Merged(Event asked);

 private:
  const Schedule& schedule_;
  uint16_t pool_ = 0;  // the first that was used; 0: none was
};

}  // namespace memreplay
