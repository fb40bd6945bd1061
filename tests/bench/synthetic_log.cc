#include "tests/bench/synthetic_log.h"

#include <cstdint>
#include <random>
#include <utility>
#include <vector>

namespace memreplay {
namespace {

class LogWriter {
 public:
  LogWriter() {
    trace_.format = "synthetic";
    trace_.is_program = true;
    trace_.streams = {StreamHandle(0)};
    trace_.devices.emplace_back();
  }
  // Returns the handle.
  uint64_t Alloc(uint64_t size) {
    Add(EventKind::kAlloc, next_, size);
    return next_++;
  }
  void Free(uint64_t handle) { Add(EventKind::kFree, handle, 0); }
  void Free(const std::vector<uint64_t>& handles) {
    for (const uint64_t handle : handles) Free(handle);
  }
  Trace Take() { return std::move(trace_); }

 private:
  void Add(EventKind kind, uint64_t handle, uint64_t size) {
    Event& event = trace_.devices[0].events.emplace_back();
    event.kind = kind;
    event.address = Address(handle);
    event.size = Bytes(size);
  }

  Trace trace_;
  uint64_t next_ = 0;
};

}  // namespace

Trace SyntheticLog(int steps) {
  constexpr uint64_t kHidden = 4096, kInner = 11008, kVocabulary = 32000, kBf16 = 2;
  constexpr int kLayers = 32;
  constexpr uint64_t kWeights[] = {
      3 * kHidden * kHidden, kHidden * kHidden, kHidden * kInner, kHidden * kInner,
      kInner * kHidden,      kHidden,           kHidden};
  LogWriter log;
  for (int layer = 0; layer < kLayers; ++layer) {
    for (const uint64_t weight : kWeights) {
      log.Alloc(weight * kBf16);
      log.Alloc(weight * 4);  // first and second moment
      log.Alloc(weight * 4);
    }
  }
  std::minstd_rand random(12345);
  for (int step = 0; step < steps; ++step) {
    const uint64_t tokens = 1024 + 64 * (random() % 48);
    const uint64_t activation = tokens * kHidden * kBf16;
    std::vector<std::vector<uint64_t>> saved(kLayers);
    for (std::vector<uint64_t>& layer : saved) {
      std::vector<uint64_t> temporaries = {log.Alloc(activation), log.Alloc(tokens * 4)};
      for (const uint64_t size : {3 * activation, activation, tokens * 128, activation,
                                  tokens * kInner * kBf16, tokens * kInner * kBf16, activation}) {
        layer.push_back(log.Alloc(size));
      }
      for (int i = 0; i < 4; ++i) temporaries.push_back(log.Alloc(512 * (1 + random() % 40)));
      temporaries.push_back(log.Alloc(2 * activation + 512 * (random() % 8)));
      log.Free(temporaries);
    }
    const std::vector<uint64_t> loss = {log.Alloc(tokens * kVocabulary * 4),
                                        log.Alloc(tokens * kVocabulary * kBf16), log.Alloc(512)};
    std::vector<std::pair<uint64_t, uint64_t>> gradients;
    for (int layer = kLayers - 1; layer >= 0; --layer) {
      const std::vector<uint64_t> temporaries = {
          log.Alloc(activation), log.Alloc(tokens * kInner * kBf16), log.Alloc(3 * activation)};
      for (const uint64_t weight : kWeights) {
        gradients.emplace_back(log.Alloc(weight * kBf16), weight);
      }
      log.Free(saved[layer]);
      log.Free(temporaries);
    }
    log.Free(loss);
    for (const auto& [id, weight] : gradients) log.Free(log.Alloc(weight * 4));
    for (const auto& [id, weight] : gradients) log.Free(id);
  }
  return log.Take();
}

}  // namespace memreplay
