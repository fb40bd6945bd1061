#include "report/text/render_together.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/str_format.h"
#include "report/text/render_table.h"
#include "report/words/answer.h"
#include "report/words/sizes.h"
#include "trace/value/bounded.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

std::string Name(const proto::Together::Device& device) {
  return device.device() == 0 ? device.file() : StrCat(device.file(), ", device ", device.device());
}

}  // namespace

std::string RenderTogether(const proto::Together& together, size_t shown) {
  std::string out = StrCat(FormatCount(together.files(), "file"),
                           together.failed() > 0 ? StrCat(", ", together.failed(), " failed") : "",
                           ", ", FormatCount(together.devices_size(), "device"), ": ");
  if (together.rows().empty()) return out + "no settings are accepted by all of them.\n";
  const proto::Together::Row& best = together.rows(0);
  int64_t now = 0, now_sum = 0, now_ooms = 0;
  for (const proto::Together::Device& device : together.devices()) {
    now = std::max(now, device.peak_reserved_bytes());
    now_sum = BoundedSum(now_sum, device.peak_reserved_bytes());
    now_ooms = BoundedSum(now_ooms, device.ooms());
  }
  absl::StrAppendFormat(
      &out, "best for all: %s, with a peak of %s reserved on the worst device instead of %s",
      SettingsName(best.conf()), FormatSize(best.peak_reserved_bytes()), FormatSize(now));
  absl::StrAppendFormat(&out, "; %s instead of %s in total",
                        FormatSize(best.sum_peak_reserved_bytes()), FormatSize(now_sum));
  if (best.ooms() > 0 || now_ooms > 0) {
    absl::StrAppendFormat(&out, "; OUT OF MEMORY %d times instead of %d", best.ooms(), now_ooms);
  }
  StrAppend(&out, ".\n");
  if (!best.conf().empty()) {
    StrAppend(&out, "    export ", together.variable(), "=", best.conf(), "\n");
  }
  Table rows{"",
             {{"worst", Unit::kSize, "  %10s"},
              {"sum", Unit::kSize, "  %10s"},
              {"ooms", Unit::kCount, "  %5s"},
              {"settings"}},
             true};
  for (int i = 0; i < together.rows_size() && static_cast<size_t>(i) < shown; ++i) {
    const proto::Together::Row& row = together.rows(i);
    rows.Add({row.peak_reserved_bytes(), row.sum_peak_reserved_bytes(), row.ooms(),
              StrCat(SettingsName(row.conf()),
                     " (worst: ", Name(together.devices(row.worst_device())), ")")});
  }
  Table devices{"",
                {{"now", Unit::kSize, "  %10s"},
                 {"together", Unit::kSize, "  %10s"},
                 {"own best", Unit::kSize, "  %10s"},
                 {"file"}},
                true};
  for (int i = 0; i < together.devices_size(); ++i) {
    const proto::Together::Device& device = together.devices(i);
    devices.Add({device.peak_reserved_bytes(), best.device_peak_bytes(i),
                 device.own_best_peak_reserved_bytes(),
                 StrCat(Name(device), device.is_outlier() ? "  <- outlier" : "")});
  }
  for (const Table* table : {&rows, &devices}) {
    StrAppend(&out, "\n");
    AddTable(*table, &out);
  }
  for (const proto::Together::Untried& file : together.untried()) {
    StrAppend(&out, file.file(), ": ", FormatCount(file.confs_size(), "setting"),
              " that may suit all files ", file.confs_size() == 1 ? "was" : "were",
              " not tried on it; --json lists ", file.confs_size() == 1 ? "it" : "them", ".\n");
  }
  return out;
}

}  // namespace memreplay
