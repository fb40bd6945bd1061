// Streams, events and captures: which work of a card is done, by a stated model.
//
// Time is counted in launches. A stream's work is done when the host has waited for it or, with
// kLagging, at the latest kLaunchQueue launches later: a driver blocks the host when that many are
// queued. A loop that only polls (NCCL's watchdog, `while not event.query()`) ends too, because
// kMaxPolls polls without a launch in between count as a wait. With kAtOnce work is done at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace memreplay::card {

inline constexpr uint64_t kLaunchQueue = 1024;
// A caller that polls this often while nothing is launched waits for the work.
inline constexpr int kMaxPolls = 1000;

// A stream of one card.
struct StreamKey {
  int card;
  uint64_t handle;
  bool operator==(const StreamKey& other) const {
    return card == other.card && handle == other.handle;
  }
};

// Hashes a StreamKey.
struct StreamKeyHash {
  size_t operator()(const StreamKey& key) const {
    return static_cast<size_t>(key.handle * 64 + static_cast<uint64_t>(key.card));
  }
};

// What cudaEvent_t points to.
struct Event {
  static constexpr int kErrorIfNull = 400;  // invalid resource handle

  StreamKey stream = {0, 0};
  uint64_t time = 0;     // 0: never recorded
  uint64_t capture = 0;  // the capture in which it was recorded
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
  uint64_t Create(int card, int priority, uint64_t alignment = 16);
  void Destroy(StreamKey stream) { streams_.erase(stream); }
  int PriorityOf(StreamKey stream) const;

  // `now` is the number of launches so far, at least 1 and never less than before.
  void Record(Event* event, StreamKey stream, uint64_t now);
  void WaitFor(StreamKey stream, const Event& event, uint64_t now);
  bool IsComplete(const Event& event, uint64_t now) const;
  // Returns what IsComplete() would with kLagging, whatever the setting.
  bool IsCompleteIfLagging(const Event& event, uint64_t now) const;
  // Answers a script's query like IsComplete(), but does not return false forever.
  bool Poll(const Event& event, uint64_t now);
  bool Poll(StreamKey stream, uint64_t now);
  // Make the host wait.
  void Synchronize(const Event& event);
  void Synchronize(StreamKey stream, uint64_t now);
  void SynchronizeCard(int card, uint64_t now);

  // Captures have numbers; 0 is none.
  void BeginCapture(StreamKey stream);
  uint64_t EndCapture(StreamKey stream);  // returns the capture that ended
  uint64_t CaptureOf(StreamKey stream) const;
  bool capturing() const { return captures_active_ != 0; }

 private:
  struct Wait {
    uint64_t at;
    StreamKey other;
    uint64_t until;
  };
  struct Stream {
    int priority = 0;
    uint64_t done = 0;  // work up to this time is done
    uint64_t last = 0;  // time of the last record or wait
    uint64_t capture = 0;
    std::vector<Wait> waits;
  };

  bool IsWaitedFor(const Event& event) const;
  void Finish(StreamKey stream, uint64_t until);

  Completion completion_;
  std::unordered_map<StreamKey, Stream, StreamKeyHash> streams_;
  std::unordered_map<int64_t, uint64_t> created_;  // (card, priority) -> how many
  uint64_t captures_ = 0;
  uint64_t captures_active_ = 0;
  uint64_t polled_at_ = 0;  // when Poll() last returned false
  int polls_ = 0;           // how often since anything was launched
};

}  // namespace memreplay::card
