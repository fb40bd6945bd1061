// The beginning of a page of several devices or ranks, with a row for each, the worst first.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "proto/report.pb.h"

namespace memreplay {

// A device of a page.
struct PageDevice {
  const proto::DeviceReport* report;  // not null
  size_t index;                       // among the devices of all inputs, in their order
  std::string name;                   // "rank0.pickle, device 0"
};

// Puts devices that ran out of memory first, then those with the highest peaks. Stable.
void SortWorstFirst(std::vector<PageDevice>* devices);

// Returns a row for each device: its memory over the run on one scale, peaks, diagnosis, and a link
// to its part of the page. If `job` is not null, it has the same devices as ranks, by index.
std::string Contents(absl::Span<const PageDevice> devices, const proto::Job* job);

}  // namespace memreplay
