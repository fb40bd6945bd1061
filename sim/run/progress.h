// Receives the progress of a question.
#pragma once

#include <cstddef>
#include <string_view>

namespace memreplay {

// A receiver of how much of some work is done.
class ProgressSink {
 public:
  virtual ~ProgressSink() = default;
  // Sets the current activity, such as "replaying device 0".
  virtual void SetActivity(std::string_view activity) = 0;
  // Set the amounts in the unit that is counted: events, runs or files. A total of 0 means unknown.
  // They may be called from any thread.
  virtual void SetTotal(size_t total) = 0;
  virtual void SetDone(size_t done) = 0;
  virtual void AddDone() = 0;  // one more
};

}  // namespace memreplay
