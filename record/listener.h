// Passes on what a process writes, and listens to it.
#pragma once

#include <functional>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"

namespace memreplay {

// Stands between a process and the terminals, pipes or files that it writes to. The process sees a
// terminal where there is one. What it writes is passed on at once while PassOn() waits, in order
// where standard output and standard error are the same.
class Listener {
 public:
  using Heard = std::function<void(std::string_view)>;

  // `heard` may be null: then the process writes directly.
  explicit Listener(Heard heard) : heard_(std::move(heard)) {}
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;
  ~Listener();

  // Opens what the process will write to. `output_to` is a descriptor of ours. Error: Internal if
  // no pipe can be made.
  absl::Status Open(int output_to);
  // Return what the process writes to; -1: what it inherits.
  int output() const { return output_; }
  int error() const { return error_; }
  // Closes these, once the process was started.
  void CloseEnds();
  // Waits until there is something to pass on, at most so long, and passes it on.
  void PassOn(int milliseconds);
  // Leaves the rest, if processes that outlive the one that was started may still write, to a
  // process that passes it on until they have ended: without a reader they would be ended.
  void Leave();

 private:
  struct Channel {
    int from;
    int to;
  };
  absl::Status AddChannel(int to, int* end);
  // Passes on what there is. Returns whether more may come.
  bool PassOn(const Channel& channel);

  Heard heard_;
  std::vector<Channel> channels_;
  int output_ = -1;
  int error_ = -1;
};

}  // namespace memreplay
