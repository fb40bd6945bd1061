#include "record/card/model/streams.h"

namespace memreplay::card {

uint64_t Streams::Create(int card, int priority, uint64_t alignment) {
  const auto above = static_cast<uint64_t>(priority < 0 ? -priority : priority);
  uint64_t& created = created_[card * int64_t{64} + static_cast<int64_t>(above)];
  const uint64_t handle = (++created + above * 1000) * alignment;
  streams_[{card, handle}].priority = priority;
  return handle;
}

int Streams::PriorityOf(StreamKey stream) const {
  const auto found = streams_.find(stream);
  return found == streams_.end() ? 0 : found->second.priority;
}

void Streams::Record(Event* event, StreamKey stream, uint64_t now) {
  Stream& s = streams_[stream];
  s.last = now;
  *event = Event{stream, now, s.capture};
}

void Streams::WaitFor(StreamKey stream, const Event& event, uint64_t now) {
  if (event.time == 0) return;
  Stream& s = streams_[stream];
  s.last = now;
  if (event.capture != 0) {
    s.capture = event.capture;
    return;
  }
  if (IsComplete(event, now) || event.stream == stream) return;
  s.waits.push_back({now, event.stream, event.time});
}

bool Streams::IsWaitedFor(const Event& event) const {
  const auto found = streams_.find(event.stream);
  return event.time == 0 || found == streams_.end() || event.time <= found->second.done;
}

bool Streams::IsComplete(const Event& event, uint64_t now) const {
  if (completion_ == Completion::kAtOnce) return true;
  return completion_ == Completion::kLagging ? IsCompleteIfLagging(event, now) : IsWaitedFor(event);
}

bool Streams::IsCompleteIfLagging(const Event& event, uint64_t now) const {
  return IsWaitedFor(event) || now - event.time >= kLaunchQueue;
}

bool Streams::Poll(const Event& event, uint64_t now) {
  if (IsComplete(event, now)) return true;
  if (completion_ != Completion::kLagging) return false;
  if (now != polled_at_) polls_ = 0;
  polled_at_ = now;
  if (++polls_ < kMaxPolls) return false;
  polls_ = 0;
  Finish(event.stream, event.time);
  return true;
}

bool Streams::Poll(StreamKey stream, uint64_t now) {
  const auto found = streams_.find(stream);
  return found == streams_.end() || Poll(Event{stream, found->second.last, 0}, now);
}

void Streams::Synchronize(const Event& event) { Finish(event.stream, event.time); }

void Streams::Synchronize(StreamKey stream, uint64_t now) { Finish(stream, now); }

void Streams::SynchronizeCard(int card, uint64_t now) {
  std::vector<StreamKey> all;
  for (const auto& [key, stream] : streams_) {  // in any order
    if (key.card == card) all.push_back(key);
  }
  for (const StreamKey& key : all) Finish(key, now);
}

void Streams::Finish(StreamKey stream, uint64_t until) {
  std::vector<std::pair<StreamKey, uint64_t>> todo = {{stream, until}};
  while (!todo.empty()) {
    const auto [key, time] = todo.back();
    todo.pop_back();
    const auto found = streams_.find(key);
    if (found == streams_.end() || found->second.done >= time) continue;
    Stream& s = found->second;
    s.done = time;
    size_t kept = 0;
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

void Streams::BeginCapture(StreamKey stream) {
  streams_[stream].capture = ++captures_;
  ++captures_active_;
}

uint64_t Streams::EndCapture(StreamKey stream) {
  const uint64_t capture = CaptureOf(stream);
  if (capture == 0) return 0;
  --captures_active_;
  for (auto& [key, other] : streams_) {  // in any order
    if (other.capture == capture) other.capture = 0;
  }
  return capture;
}

uint64_t Streams::CaptureOf(StreamKey stream) const {
  const auto found = streams_.find(stream);
  return found == streams_.end() ? 0 : found->second.capture;
}

}  // namespace memreplay::card
