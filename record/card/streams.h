// Streams, events and captures: which work of a card is done, by a stated model.
//
// Time is counted in launches. A stream's work is done when the host waited for it, or, with
// `lagging`, at the latest when kLaunchQueue launches followed: a driver holds back the host when
// that many wait. A loop that does nothing but ask (NCCL's watchdog, `while not event.query()`)
// ends too: kMaxPolls questions without a launch in between are a wait. Without `lagging` all work
// is done at once.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

namespace memreplay::card {

inline constexpr std::uint64_t kLaunchQueue = 1024;
// Who asks so often whether work is done, while nothing is launched, waits for it.
inline constexpr int kMaxPolls = 1000;

struct StreamKey {
  int card;
  std::uint64_t handle;
  bool operator==(const StreamKey& other) const {
    return card == other.card && handle == other.handle;
  }
};

struct StreamKeyHash {
  std::size_t operator()(const StreamKey& key) const {
    return static_cast<std::size_t>(key.handle * 64 + static_cast<std::uint64_t>(key.card));
  }
};

struct Event {
  StreamKey stream = {0, 0};
  std::uint64_t time = 0;     // 0: never recorded
  std::uint64_t capture = 0;  // recorded while this capture lasted
};

class Streams {
 public:
  enum class Completion { kAtOnce, kLagging, kExplicit };  // explicit: only when waited for
  explicit Streams(Completion completion) : completion_(completion) {}
  void set_completion(Completion completion) { completion_ = completion; }
  Completion completion() const { return completion_; }

  // Handles are multiples of `alignment`, in the order of creation: the n-th stream of one priority
  // (n from 1) is n * alignment, priorities other than 0 start at 1000 * |priority| * alignment.
  std::uint64_t create(int card, int priority, std::uint64_t alignment = 16);
  void destroy(StreamKey stream) { streams_.erase(stream); }
  int priority(StreamKey stream) const;

  // `now` is the number of launches so far, at least 1 and never less than before.
  void record(Event* event, StreamKey stream, std::uint64_t now);
  void wait(StreamKey stream, const Event& event, std::uint64_t now);
  bool complete(const Event& event, std::uint64_t now) const;
  bool idle(StreamKey stream, std::uint64_t now) const;
  // complete() of `lagging`, whichever is asked for.
  bool complete_if_lagging(const Event& event, std::uint64_t now) const;
  // What a program is told that asks: as complete() and idle(), but not "no" for ever.
  bool poll(const Event& event, std::uint64_t now);
  bool poll(StreamKey stream, std::uint64_t now);
  // The host waits.
  void synchronize(const Event& event);
  void synchronize(StreamKey stream, std::uint64_t now);
  void synchronize_card(int card, std::uint64_t now);

  // Captures. Zero is "none".
  void begin_capture(StreamKey stream);
  std::uint64_t end_capture(StreamKey stream);  // the capture that ended
  std::uint64_t capture_of(StreamKey stream) const;
  bool capturing() const { return captures_active_ != 0; }

 private:
  struct Wait {
    std::uint64_t at;
    StreamKey other;
    std::uint64_t until;
  };
  struct Stream {
    int priority = 0;
    std::uint64_t done = 0;  // work up to this time is done
    std::uint64_t last = 0;  // time of the last record or wait
    std::uint64_t capture = 0;
    std::vector<Wait> waits;
  };

  bool waited_for(const Event& event) const;
  void finish(StreamKey stream, std::uint64_t until);

  Completion completion_;
  std::unordered_map<StreamKey, Stream, StreamKeyHash> streams_;
  std::unordered_map<std::int64_t, std::uint64_t> created_;  // (card, priority) -> how many
  std::uint64_t captures_ = 0;
  std::uint64_t captures_active_ = 0;
  std::uint64_t polled_at_ = 0;  // when poll() last said no
  int polls_ = 0;                // how often since anything was launched
};

}  // namespace memreplay::card
