// Notices when nothing happens any more in a script's processes, and which of them have ended.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <string>

namespace memreplay {

// The processes below one, as /proc shows them. A script whose child died may wait for it forever:
// a worker of a compiler, a rank, an engine.
class ProcessWatch {
 public:
  // `limit` is after how long of nothing it is said.
  ProcessWatch(pid_t root, std::chrono::duration<double> limit) : root_(root), limit_(limit) {}

  // Looks at the processes, if the last look was a while ago. `launches` is how many kernels were
  // launched so far. Returns what to say: "nothing has happened for 60 s: process 12 (python
  // worker.py) was ended by signal 9 (Killed), and its parent 11 waits", once in each `limit`; ""
  // most of the time.
  std::string Look(uint64_t launches);
  // Returns the same about now; "" if something happened less than `limit` ago.
  std::string Sentence() const;

 private:
  using Clock = std::chrono::steady_clock;

  struct Process {
    pid_t parent = 0;
    uint64_t started = 0;  // differs for another process of the same number
    uint64_t ticks = 0;    // of the processor
    std::string command;
    std::string end;  // "ended"; "" while it runs
    Clock::time_point ended_at;
    bool is_kept = false;  // by its parent, which has not asked how it ended
  };
  struct Seen;

  // Returns the ticks that the processes have used since the last look.
  uint64_t Update(const std::map<pid_t, Seen>& now);

  const pid_t root_;
  const std::chrono::duration<double> limit_;
  std::map<pid_t, Process> processes_;
  uint64_t launches_ = 0;
  Clock::time_point looked_ = Clock::now();
  Clock::time_point quiet_since_ = Clock::now();
  Clock::time_point said_ = Clock::now();
};

}  // namespace memreplay
