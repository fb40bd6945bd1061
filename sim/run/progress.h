// Who is told how far a question has got.
#ifndef MEMREPLAY_SIM_RUN_PROGRESS_H_
#define MEMREPLAY_SIM_RUN_PROGRESS_H_

#include <cstddef>
#include <string_view>

namespace memreplay {

class ProgressSink {
 public:
  virtual ~ProgressSink() = default;
  // "replaying device 0".
  virtual void SetActivity(std::string_view activity) = 0;
  // In whatever is counted: events, runs, files. A total of 0: not known. Any thread.
  virtual void SetTotal(size_t total) = 0;
  virtual void SetDone(size_t done) = 0;
  virtual void AddDone() = 0;  // one more
};

}  // namespace memreplay

#endif  // MEMREPLAY_SIM_RUN_PROGRESS_H_
