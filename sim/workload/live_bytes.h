// Requested bytes that are live, followed through the events of an unvalidated file.
#pragma once

#include <cstdint>

#include "absl/container/flat_hash_map.h"
#include "trace/value/bounded.h"
#include "trace/value/trace.h"

namespace memreplay {

// The live bytes, from an unknown start that counts as 0. Frees of a schedule that was written name
// a handle; those of a recording also have a size. O(1) per event.
class LiveBytes {
 public:
  LiveBytes(const Trace& trace, const DeviceTrace& device)
      : is_program_(trace.is_program), end_of_life_(EndOfLife(trace, device)) {}
  bool IsEndOfLife(const Event& event) const { return event.kind == end_of_life_; }
  void Pass(const Event& event) {
    if (event.kind == EventKind::kAlloc) {
      now_ = BoundedSum(now_, event.size.signed_value());
      if (is_program_) sizes_[event.address.value()] = event.size.signed_value();
    } else if (event.kind == end_of_life_) {
      if (!is_program_) {
        now_ = BoundedSum(now_, -Bounded(event.size.signed_value()));
      } else if (const auto found = sizes_.find(event.address.value()); found != sizes_.end()) {
        now_ = BoundedSum(now_, -Bounded(found->second));
        sizes_.erase(found);
      }
    }
  }
  int64_t now() const { return now_; }

 private:
  bool is_program_;
  EventKind end_of_life_;
  int64_t now_ = 0;
  absl::flat_hash_map<uint64_t, int64_t> sizes_;
};

}  // namespace memreplay
