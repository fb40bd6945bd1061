#include "sim/whatif/one_pool.h"

namespace memreplay {

Event OnePool::Merged(Event asked) {
  if (asked.pool != 0) {
    if (pool_ == 0) pool_ = asked.pool;
    asked.pool = pool_;
  }
  return asked;
}

Intervention::Next OnePool::BeforeRequest(size_t request, Allocator& allocator,
                                          Observer& observer) {
  const Event given = schedule_.requests()[request];
  const Event asked = Merged(given);
  const bool ends = given.kind == EventKind::kPoolRelease || given.kind == EventKind::kPoolForget;
  const bool is_made = given.kind == EventKind::kPoolCreate && asked.pool != given.pool;
  if (ends || is_made) return Next::kSkip;  // others still use it
  if (asked.pool == given.pool) return Next::kApply;
  allocator.Apply(asked, observer).IgnoreError();
  return Next::kSkip;
}

}  // namespace memreplay
