#include <algorithm>
#include <cstdio>

#include "hardware/outside_figures.h"

namespace memreplay {

AssumedOutside AssumeOutside(int multiprocessors) {
  if (multiprocessors <= 0) {
    return {kOutsideOfUnknownGpu, "no GPU is named; " + std::to_string(kReportsWithinUnknown) +
                                      " of " + std::to_string(kReports) +
                                      " public reports have no more"};
  }
  const int64_t each = kOutsidePerMultiprocessor.high;
  const int counted = std::max(multiprocessors, kFewestMultiprocessors);
  char mebibytes[32];
  std::snprintf(mebibytes, sizeof mebibytes, "%.2f", static_cast<double>(each) / (1 << 20));
  return {each * counted, std::string(mebibytes) + " MiB for each of " + std::to_string(counted) +
                              " multiprocessors" +
                              (counted > multiprocessors ? ", the fewest in public reports" : "") +
                              ": 90 % of " + std::to_string(kOutsidePerMultiprocessor.reports) +
                              " public reports have no more"};
}

}  // namespace memreplay
