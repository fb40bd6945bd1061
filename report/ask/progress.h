// Who is told how far a question has got.
#ifndef MEMREPLAY_REPORT_ASK_PROGRESS_H_
#define MEMREPLAY_REPORT_ASK_PROGRESS_H_

#include <cstddef>
#include <string_view>

namespace memreplay {

class ProgressSink {
 public:
  virtual ~ProgressSink() = default;
  // "replaying device 0".
  virtual void SetActivity(std::string_view activity) = 0;
  // In whatever is counted; 0: not known. Any thread.
  virtual void SetTotal(size_t total) = 0;
  virtual void SetDone(size_t done) = 0;
};

}  // namespace memreplay

#endif  // MEMREPLAY_REPORT_ASK_PROGRESS_H_
