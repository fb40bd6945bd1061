// Streams, events and captures: which work of a card is done, by a stated model.
//
// Time is counted in launches. A stream's work is done when the host has waited for it or, with
// kLagging, at the latest kLaunchQueue launches later: a driver blocks the host when that many are
// queued. A loop that only polls (NCCL's watchdog, `while not event.query()`) ends too, because
// kMaxPolls polls without a launch in between count as a wait. With kAtOnce work is done at once.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

namespace memreplay::card {

inline constexpr std::uint64_t kLaunchQueue = 1024;
// A caller that polls this often while nothing is launched waits for the work.
inline constexpr int kMaxPolls = 1000;

// A stream of one card.
struct StreamKey {
  int card;
  std::uint64_t handle;
  bool operator==(const StreamKey& other) const {
    return card == other.card && handle == other.handle;
  }
};

// Hashes a StreamKey.
struct StreamKeyHash {
  std::size_t operator()(const StreamKey& key) const {
    return static_cast<std::size_t>(key.handle * 64 + static_cast<std::uint64_t>(key.card));
  }
};

// What cudaEvent_t points to.
struct Event {
  static constexpr int kErrorIfNull = 400;  // invalid resource handle

  StreamKey stream = {0, 0};
  std::uint64_t time = 0;     // 0: never recorded
  std::uint64_t capture = 0;  // the capture in which it was recorded
};

// All streams of a process.
class Streams {
 public:
  enum class Completion { kAtOnce, kLagging, kExplicit };  // kExplicit: only when waited for
  explicit Streams(Completion completion) : completion_(completion) {}
  void set_completion(Completion completion) { completion_ = completion; }
  Completion completion() const { return completion_; }

  // Creates a stream. Handles are multiples of `alignment`, in the order of creation: the n-th
  // stream of one priority (n from 1) is n * alignment; priorities other than 0 start at 1000 *
  // |priority| * alignment.
  std::uint64_t create(int card, int priority, std::uint64_t alignment = 16);
  void destroy(StreamKey stream) { streams_.erase(stream); }
  int priority(StreamKey stream) const;

  // `now` is the number of launches so far, at least 1 and never less than before.
  void record(Event* event, StreamKey stream, std::uint64_t now);
  void wait(StreamKey stream, const Event& event, std::uint64_t now);
  bool complete(const Event& event, std::uint64_t now) const;
  bool idle(StreamKey stream, std::uint64_t now) const;
  // Returns what complete() would with kLagging, whatever the setting.
  bool complete_if_lagging(const Event& event, std::uint64_t now) const;
  // Answers a script's query like complete() and idle(), but does not return false forever.
  bool poll(const Event& event, std::uint64_t now);
  bool poll(StreamKey stream, std::uint64_t now);
  // Make the host wait.
  void synchronize(const Event& event);
  void synchronize(StreamKey stream, std::uint64_t now);
  void synchronize_card(int card, std::uint64_t now);

  // Captures have numbers; 0 is none.
  void begin_capture(StreamKey stream);
  std::uint64_t end_capture(StreamKey stream);  // returns the capture that ended
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
  std::uint64_t polled_at_ = 0;  // when poll() last returned false
  int polls_ = 0;                // how often since anything was launched
};

}  // namespace memreplay::card
