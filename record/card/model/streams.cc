#include "record/card/model/streams.h"

namespace memreplay::card {

std::uint64_t Streams::create(int card, int priority, std::uint64_t alignment) {
  const auto above = static_cast<std::uint64_t>(priority < 0 ? -priority : priority);
  std::uint64_t& created = created_[card * std::int64_t{64} + static_cast<std::int64_t>(above)];
  const std::uint64_t handle = (++created + above * 1000) * alignment;
  streams_[{card, handle}].priority = priority;
  return handle;
}

int Streams::priority(StreamKey stream) const {
  const auto found = streams_.find(stream);
  return found == streams_.end() ? 0 : found->second.priority;
}

void Streams::record(Event* event, StreamKey stream, std::uint64_t now) {
  Stream& s = streams_[stream];
  s.last = now;
  *event = Event{stream, now, s.capture};
}

void Streams::wait(StreamKey stream, const Event& event, std::uint64_t now) {
  if (event.time == 0) return;
  Stream& s = streams_[stream];
  s.last = now;
  if (event.capture != 0) {
    s.capture = event.capture;
    return;
  }
  if (complete(event, now) || event.stream == stream) return;
  s.waits.push_back({now, event.stream, event.time});
}

bool Streams::waited_for(const Event& event) const {
  const auto found = streams_.find(event.stream);
  return event.time == 0 || found == streams_.end() || event.time <= found->second.done;
}

bool Streams::complete(const Event& event, std::uint64_t now) const {
  if (completion_ == Completion::kAtOnce) return true;
  return completion_ == Completion::kLagging ? complete_if_lagging(event, now) : waited_for(event);
}

bool Streams::complete_if_lagging(const Event& event, std::uint64_t now) const {
  return waited_for(event) || now - event.time >= kLaunchQueue;
}

bool Streams::idle(StreamKey stream, std::uint64_t now) const {
  const auto found = streams_.find(stream);
  if (found == streams_.end()) return true;
  return complete(Event{stream, found->second.last, 0}, now);
}

bool Streams::poll(const Event& event, std::uint64_t now) {
  if (complete(event, now)) return true;
  if (completion_ != Completion::kLagging) return false;
  if (now != polled_at_) polls_ = 0;
  polled_at_ = now;
  if (++polls_ < kMaxPolls) return false;
  polls_ = 0;
  finish(event.stream, event.time);
  return true;
}

bool Streams::poll(StreamKey stream, std::uint64_t now) {
  const auto found = streams_.find(stream);
  return found == streams_.end() || poll(Event{stream, found->second.last, 0}, now);
}

void Streams::synchronize(const Event& event) { finish(event.stream, event.time); }

void Streams::synchronize(StreamKey stream, std::uint64_t now) { finish(stream, now); }

void Streams::synchronize_card(int card, std::uint64_t now) {
  std::vector<StreamKey> all;
  for (const auto& [key, stream] : streams_) {  // in any order
    if (key.card == card) all.push_back(key);
  }
  for (const StreamKey& key : all) finish(key, now);
}

void Streams::finish(StreamKey stream, std::uint64_t until) {
  std::vector<std::pair<StreamKey, std::uint64_t>> todo = {{stream, until}};
  while (!todo.empty()) {
    const auto [key, time] = todo.back();
    todo.pop_back();
    const auto found = streams_.find(key);
    if (found == streams_.end() || found->second.done >= time) continue;
    Stream& s = found->second;
    s.done = time;
    std::size_t kept = 0;
    for (const Wait& wait : s.waits) {
      if (wait.at <= time) {
        todo.push_back({wait.other, wait.until});
      } else {
        s.waits[kept++] = wait;
      }
    }
    s.waits.resize(kept, Wait{0, {0, 0}, 0});
  }
}

void Streams::begin_capture(StreamKey stream) {
  streams_[stream].capture = ++captures_;
  ++captures_active_;
}

std::uint64_t Streams::end_capture(StreamKey stream) {
  const std::uint64_t capture = capture_of(stream);
  if (capture == 0) return 0;
  --captures_active_;
  for (auto& [key, other] : streams_) {  // in any order
    if (other.capture == capture) other.capture = 0;
  }
  return capture;
}

std::uint64_t Streams::capture_of(StreamKey stream) const {
  const auto found = streams_.find(stream);
  return found == streams_.end() ? 0 : found->second.capture;
}

}  // namespace memreplay::card
