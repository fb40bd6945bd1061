// Starts a process, watches it and waits for it.
#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace memreplay {

// Passes on what a process writes, and listens to it.

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

// What to start, and how.
struct ChildOptions {
  std::vector<std::string> words;                  // command, looked up in PATH, and its arguments
  std::map<std::string, std::string> environment;  // added to, or in place of, our own
  bool fixed_addresses = true;                     // address space randomisation off, children too
  std::string output;     // where its output goes: "" as ours, "-" to stderr, else a file
  Listener::Heard heard;  // hears it as well, unless it goes to a file; may be null
};

// A process that was started. It is killed on destruction unless it was waited for, and gets
// SIGTERM if the thread that started it ends before.
class Child {
 public:
  // Error: InvalidArgument if the command is not found or cannot be started.
  static absl::StatusOr<Child> Start(const ChildOptions& options);
  Child(Child&& other) noexcept : pid_(other.pid_), listener_(std::move(other.listener_)) {
    other.pid_ = -1;
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child();  // kills the process unless it was waited for

  pid_t pid() const { return pid_; }
  // Passes on what the process writes meanwhile. Returns the exit status, or 128 + N if signal N
  // ended the process; nullopt if it still runs after `milliseconds`.
  std::optional<int> Wait(int milliseconds);
  void Signal(int signal) const;
  // Passes on what the process and its children write, for at most `milliseconds`.
  void PassOn(int milliseconds) { listener_->PassOn(milliseconds); }
  // Makes sure that children of the process which outlive it can still write.
  void LeaveChildren() { listener_->Leave(); }

 private:
  Child(pid_t pid, std::unique_ptr<Listener> listener)
      : pid_(pid), listener_(std::move(listener)) {}

  pid_t pid_;
  std::unique_ptr<Listener> listener_;
};

}  // namespace memreplay
