// The rows of cards.tsv, which card_rows.py makes constants.
#pragma once

#include <cstddef>
#include <cstdint>

namespace memreplay {

// A row; cards.tsv says what its columns are. 0: unknown.
struct CardRow {
  const char *name, *title, *group;
  int capability;
  uint64_t linux_memory, windows_memory;
  bool is_nominal;
  int multiprocessors, l2_kib, clock_mhz, memory_clock_mhz, memory_bus_bits;
  int tensor_tflops, pcie_lanes;
  const char* source;
};

extern const CardRow kCardRows[];
extern const size_t kCardRowCount;

}  // namespace memreplay
