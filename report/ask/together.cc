#include "report/ask/together.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <tuple>
#include <utility>

namespace memreplay {
namespace {

constexpr size_t kBestOfEach = 6;

// The fraction of memory is set by a call, unless the settings say it themselves.
bool IsWholeInText(const proto::SweepRow& row) {
  return row.memory_fraction() == 0 || row.memory_fraction() == 1 ||
         row.conf().find("per_process_memory_fraction") != std::string::npos;
}

}  // namespace

std::vector<std::string> CommonCandidates(absl::Span<const proto::Report> reports) {
  std::set<std::string> confs = {""};
  for (const proto::Report& report : reports) {
    for (const proto::DeviceReport& device : report.devices()) {
      if (IsWholeInText(device.sweep().current())) confs.insert(device.sweep().current().conf());
      size_t taken = 0;
      for (const proto::SweepRow& row : device.sweep().rows()) {
        if (!row.refused().empty() || !IsWholeInText(row)) continue;
        confs.insert(row.conf());
        if (++taken == kBestOfEach) break;
      }
    }
  }
  return {confs.begin(), confs.end()};
}

bool TakeRows(const proto::Report& alone, absl::Span<const std::string> confs,
              proto::Report* report) {
  proto::Report taken = alone;
  for (proto::DeviceReport& device : *taken.mutable_devices()) {
    const proto::Sweep own = device.sweep();
    device.mutable_sweep()->clear_rows();
    for (const std::string& conf : confs) {
      const auto row =
          std::find_if(own.rows().begin(), own.rows().end(), [&](const proto::SweepRow& each) {
            return each.conf() == conf && each.memory_fraction() == own.current().memory_fraction();
          });
      if (row == own.rows().end()) return false;
      *device.mutable_sweep()->add_rows() = *row;
    }
  }
  *report = std::move(taken);
  return true;
}

proto::Together CompareTogether(absl::Span<const proto::Report> alone,
                                absl::Span<const proto::Report> together) {
  proto::Together answer;
  std::map<std::string, proto::Together::Row> rows;
  for (size_t i = 0; i < alone.size(); ++i) {
    answer.set_files(answer.files() + 1);
    if (!alone[i].error().empty() || !together[i].error().empty() ||
        alone[i].devices_size() != together[i].devices_size()) {
      answer.set_failed(answer.failed() + 1);
      continue;
    }
    for (int d = 0; d < together[i].devices_size(); ++d) {
      const proto::Sweep& own = alone[i].devices(d).sweep();
      proto::Together::Device& device = *answer.add_devices();
      device.set_file(together[i].file());
      device.set_device(together[i].devices(d).device());
      device.set_conf(own.current().conf());
      device.set_ooms(own.current().ooms());
      device.set_peak_reserved_bytes(own.current().peak_reserved_bytes());
      if (own.rows_size() > 0) {
        device.set_own_best_conf(own.rows(0).conf());
        device.set_own_best_peak_reserved_bytes(own.rows(0).peak_reserved_bytes());
      }
      for (const proto::SweepRow& tried : together[i].devices(d).sweep().rows()) {
        if (!tried.refused().empty()) continue;
        proto::Together::Row& row = rows[tried.conf()];
        row.set_ooms(row.ooms() + tried.ooms());
        if (row.device_peak_bytes().empty() ||
            tried.peak_reserved_bytes() > row.peak_reserved_bytes()) {
          row.set_peak_reserved_bytes(tried.peak_reserved_bytes());
          row.set_worst_device(answer.devices_size() - 1);
        }
        row.set_sum_peak_reserved_bytes(row.sum_peak_reserved_bytes() +
                                        tried.peak_reserved_bytes());
        row.add_device_peak_bytes(tried.peak_reserved_bytes());
      }
    }
  }
  for (auto& [conf, row] : rows) {
    if (row.device_peak_bytes_size() != answer.devices_size()) continue;  // some release refuses it
    row.set_conf(conf);
    *answer.add_rows() = std::move(row);
  }
  std::sort(answer.mutable_rows()->begin(), answer.mutable_rows()->end(),
            [](const proto::Together::Row& a, const proto::Together::Row& b) {
              const auto key = [](const proto::Together::Row& row) {
                return std::make_tuple(row.ooms(), row.peak_reserved_bytes(),
                                       row.sum_peak_reserved_bytes(), row.conf().size(),
                                       std::string_view(row.conf()));
              };
              return key(a) < key(b);
            });
  return answer;
}

}  // namespace memreplay
