// Answers what would happen if everything ran on one stream.
#pragma once

#include "sim/run/run.h"
#include "trace/schedule/schedule.h"

namespace memreplay {

// An intervention that makes all requests on stream 0 and leaves out what synchronises streams, to
// find what more than one stream costs. It is for cold schedules: blocks of a start keep their
// stream.
class OneStream final : public Intervention {
 public:
  explicit OneStream(const Schedule& schedule) : schedule_(schedule) {}
  Next BeforeRequest(size_t request, Allocator& allocator, Observer& observer) override;

 private:
  const Schedule& schedule_;
};
// Returns whether that would change anything.
bool AllocatesOnSeveralStreams(const Schedule& schedule);

}  // namespace memreplay
