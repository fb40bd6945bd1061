#include "record/card/model/pinned.h"

#include <algorithm>
#include <optional>
#include <string>

namespace memreplay::card {
namespace {

// Returns the power of two that `bytes` are rounded up to.
size_t PowerOf(uint64_t bytes) {
  size_t power = 0;
  while (power < 64 && (bytes - 1) >> power != 0) ++power;
  return bytes <= 1 ? 0 : power;
}

}  // namespace

HostAllocatorModel::Limits HostAllocatorModel::LimitsOf(std::string_view conf) {
  Limits limits;
  const std::vector<std::string> tokens = ConfTokens(conf, true);
  for (size_t i = 2; i < tokens.size(); ++i) {  // PyTorch skips the token between key and value
    const std::optional<ConfKey> key = FindConfKey(tokens[i - 2]);
    const std::optional<uint64_t> number = ConfUnsigned(tokens[i]);
    if (!number.has_value()) continue;
    const uint64_t bytes = *number > UINT64_MAX >> 20 ? UINT64_MAX : *number << 20;
    if (key == ConfKey::kPinnedMaxRoundThresholdMb) limits.rounded_up_to = bytes;
    if (key == ConfKey::kPinnedMaxCachedSizeMb) limits.kept_up_to = bytes;
    if (key == kReserve) limits.reserves = true;
  }
  return limits;
}

uint64_t HostAllocatorModel::Take(uint64_t bytes) {
  const size_t power = PowerOf(bytes);
  const bool is_rounded = bytes <= std::min(limits_.rounded_up_to, limits_.kept_up_to);
  const uint64_t block = is_rounded && power < 64 ? uint64_t{1} << power : bytes;
  if (bytes <= limits_.kept_up_to) {
    std::vector<uint64_t>& free = free_[power];
    for (size_t i = free.size(); i-- > 0;) {
      if (free[i] < block) continue;
      const uint64_t found = free[i];
      free.erase(free.begin() + static_cast<std::ptrdiff_t>(i));
      return found;
    }
  }
  now_ += block;
  peak_ = std::max(peak_, now_);
  return block;
}

void HostAllocatorModel::Give(uint64_t block) {
  if (block > limits_.kept_up_to) {
    now_ -= block;
  } else {
    free_[PowerOf(block)].push_back(block);
  }
}

void HostAllocatorModel::Empty() {
  for (std::vector<uint64_t>& free : free_) {
    for (const uint64_t block : free) now_ -= block;
    free.clear();
  }
}

void Pinned::Add(uint64_t bytes, bool by_torch) {
  now_ += bytes;
  ++blocks_;
  if (now_ > peak_) {
    peak_ = now_;
    peak_blocks_ = blocks_;
  }
  if (by_torch) torch_peak_ = std::max(torch_peak_, torch_now_ += bytes);
}

void Pinned::Remove(uint64_t bytes, bool by_torch) {
  now_ -= bytes;
  --blocks_;
  if (by_torch) torch_now_ -= bytes;
}

void Pinned::Follow(const HostAllocatorModel::Limits& limits) {
  models_.clear();
  models_.emplace_back(limits);
  models_.emplace_back(HostAllocatorModel::Limits{std::min(limits.rounded_up_to, kRoundedInWhatIf),
                                                  limits.kept_up_to, limits.reserves});
}

void Pinned::Requested(uint64_t key, uint64_t bytes, uint64_t block, size_t line) {
  Request request{bytes, block, line};
  for (size_t i = 0; i < models_.size(); ++i) request.blocks[i] = models_[i].Take(bytes);
  if (line >= lines_.size()) lines_.resize(line + 1);
  lines_[line].requested += bytes;
  lines_[line].held += block;
  ++lines_[line].blocks;
  live_[key] = request;
  if (torch_peak_ > noted_peak_) {
    noted_peak_ = torch_peak_;
    peak_lines_ = lines_;
  }
}

uint64_t Pinned::Freeing(uint64_t key) {
  const auto found = live_.find(key);
  if (found == live_.end()) return 0;
  const Request& request = found->second;
  Line& line = lines_[request.line];
  line.requested -= request.bytes;
  line.held -= request.block;
  --line.blocks;
  waiting_[++frees_] = request;
  live_.erase(found);
  return frees_;
}

void Pinned::Recorded(uint64_t free, const void* event) {
  Done(event);  // of an earlier use
  const auto found = waiting_.find(free);
  if (found == waiting_.end()) return;
  ++found->second.pending;
  events_[event] = free;
}

void Pinned::Freed(uint64_t free) {
  const auto found = waiting_.find(free);
  if (found == waiting_.end() || found->second.pending > 0) return;
  GiveBack(found->second);
  waiting_.erase(found);
}

void Pinned::Done(const void* event) {
  if (events_.empty()) return;
  const auto found = events_.find(event);
  if (found == events_.end()) return;
  const auto waiting = waiting_.find(found->second);
  events_.erase(found);
  if (waiting == waiting_.end() || --waiting->second.pending > 0) return;
  GiveBack(waiting->second);
  waiting_.erase(waiting);
}

void Pinned::Emptied() {
  for (HostAllocatorModel& model : models_) model.Empty();
}

void Pinned::GiveBack(const Request& request) {
  for (size_t i = 0; i < models_.size(); ++i) models_[i].Give(request.blocks[i]);
}

}  // namespace memreplay::card
