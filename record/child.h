// Starts a process, watches it and waits for it.
#ifndef MEMREPLAY_RECORD_CHILD_H_
#define MEMREPLAY_RECORD_CHILD_H_

#include <sys/types.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace memreplay {

// What to start, and how.
struct ChildOptions {
  std::vector<std::string> words;                  // command, looked up in PATH, and its arguments
  std::map<std::string, std::string> environment;  // added to, or in place of, our own
  bool fixed_addresses = true;                     // address space randomisation off, children too
  std::string output;  // where its output goes: "" as ours, "-" to stderr, else a file
};

// A process that was started. It is killed on destruction unless it was waited for, and gets
// SIGTERM if the thread that started it ends before.
class Child {
 public:
  // Error: InvalidArgument if the command is not found or cannot be started.
  static absl::StatusOr<Child> Start(const ChildOptions& options);
  Child(Child&& other) noexcept : pid_(other.pid_) { other.pid_ = -1; }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child();  // kills the process unless it was waited for

  pid_t pid() const { return pid_; }
  // Returns the exit status, or 128 + N if signal N ended the process; nullopt if it still runs
  // after `milliseconds`.
  std::optional<int> Wait(int milliseconds);
  void Signal(int signal) const;

 private:
  explicit Child(pid_t pid) : pid_(pid) {}

  pid_t pid_;
};

}  // namespace memreplay

#endif  // MEMREPLAY_RECORD_CHILD_H_
