#include "sim/device/call_costs.h"

#include <algorithm>
#include <iterator>

namespace memreplay {

void CostBySize::Set(Bytes size, double nanoseconds) {
  const auto at =
      std::lower_bound(points_.begin(), points_.end(), size,
                       [](const Point& point, Bytes wanted) { return point.size < wanted; });
  if (at != points_.end() && at->size == size) {
    at->nanoseconds = nanoseconds;
  } else {
    points_.insert(at, {size, nanoseconds});
  }
}

double CostBySize::At(Bytes size) const {
  if (points_.empty()) return 0;
  const auto above =
      std::lower_bound(points_.begin(), points_.end(), size,
                       [](const Point& point, Bytes wanted) { return point.size < wanted; });
  if (above == points_.begin()) return above->nanoseconds;
  const Point& below = *std::prev(above);
  const auto bytes = [](Bytes count) { return static_cast<double>(count.value()); };
  if (above == points_.end()) return below.nanoseconds * bytes(size) / bytes(below.size);
  const double share = bytes(size - below.size) / bytes(above->size - below.size);
  return below.nanoseconds + share * (above->nanoseconds - below.nanoseconds);
}

}  // namespace memreplay
