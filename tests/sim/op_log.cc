#include "tests/sim/op_log.h"

#include <cstdint>
#include <fstream>
#include <random>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace memreplay {
namespace {

Event Operation(EventKind kind, uint64_t id, uint64_t size) {
  Event event;
  event.kind = kind;
  event.id = static_cast<AllocationId>(id);
  if (kind == EventKind::kAlloc) event.size = Bytes(size);
  return event;
}

class LogWriter {
 public:
  AllocationId Alloc(uint64_t size) {
    log_.push_back(Operation(EventKind::kAlloc, next_, size));
    return next_++;
  }
  void Free(AllocationId id) { log_.push_back(Operation(EventKind::kFree, id, 0)); }
  void Free(const std::vector<AllocationId>& ids) {
    for (const AllocationId id : ids) Free(id);
  }
  std::vector<Event> Take() { return std::move(log_); }

 private:
  std::vector<Event> log_;
  AllocationId next_ = 0;
};

}  // namespace

absl::StatusOr<std::vector<Event>> ReadOpLog(const std::string& path) {
  std::ifstream file(path);
  if (!file) return absl::NotFoundError(absl::StrCat(path, ": cannot be opened"));
  std::vector<Event> log;
  uint64_t id;
  int64_t size;
  while (file >> id >> size) {
    log.push_back(size < 0 ? Operation(EventKind::kFree, id, 0)
                           : Operation(EventKind::kAlloc, id, static_cast<uint64_t>(size)));
  }
  if (!file.eof()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ", line ", log.size() + 1, ": expected \"id size\""));
  }
  return log;
}

std::vector<Event> SyntheticOpLog(int steps) {
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
    std::vector<std::vector<AllocationId>> saved(kLayers);
    for (std::vector<AllocationId>& layer : saved) {
      std::vector<AllocationId> temporaries = {log.Alloc(activation), log.Alloc(tokens * 4)};
      for (const uint64_t size : {3 * activation, activation, tokens * 128, activation,
                                  tokens * kInner * kBf16, tokens * kInner * kBf16, activation}) {
        layer.push_back(log.Alloc(size));
      }
      for (int i = 0; i < 4; ++i) temporaries.push_back(log.Alloc(512 * (1 + random() % 40)));
      temporaries.push_back(log.Alloc(2 * activation + 512 * (random() % 8)));
      log.Free(temporaries);
    }
    const std::vector<AllocationId> loss = {log.Alloc(tokens * kVocabulary * 4),
                                            log.Alloc(tokens * kVocabulary * kBf16),
                                            log.Alloc(512)};
    std::vector<std::pair<AllocationId, uint64_t>> gradients;
    for (int layer = kLayers - 1; layer >= 0; --layer) {
      const std::vector<AllocationId> temporaries = {
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
