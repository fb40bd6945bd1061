// Starts a process, watches it and waits for it.
#pragma once

#include <sys/types.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "record/listener.h"

namespace memreplay {

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
