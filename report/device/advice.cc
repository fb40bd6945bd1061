#include <algorithm>
#include <tuple>

#include "report/device/device_report.h"

namespace memreplay {
namespace {

using Cost = std::tuple<bool, bool, double>;

constexpr Cost kNoCost = {};

// What costs time alone is cheaper than what goes over PCIe, and that than other results.
Cost CostOf(const proto::Advice::Row& row) {
  return {!row.preserves(), row.transfers(), row.cost_rank()};
}

}  // namespace

void CompareRow(const proto::Advice& advice, proto::Advice::Row* row) {
  if (!row->error().empty()) return;
  row->set_saved_bytes(advice.as_is().peak_reserved_bytes() - row->peak_reserved_bytes());
  if (advice.goal_bytes() == 0) return;
  row->set_survives(row->smallest_bytes() > 0 && row->smallest_bytes() <= advice.goal_bytes());
  row->set_fits(row->survives() && !advice.is_lower_bound());
  row->set_spare_bytes(advice.goal_bytes() - row->smallest_bytes());
}

void RankRows(proto::Advice* advice) {
  const auto key = [](const proto::Advice::Row& row) {
    return std::make_tuple(!row.error().empty(), !row.unwritten().empty(), !row.fits(),
                           row.fits() ? CostOf(row) : kNoCost, row.smallest_bytes() == 0,
                           row.smallest_bytes(), row.peak_reserved_bytes(), row.cost_rank());
  };
  std::ranges::stable_sort(
      *advice->mutable_rows(),
      [&](const proto::Advice::Row& a, const proto::Advice::Row& b) { return key(a) < key(b); });
}

}  // namespace memreplay
