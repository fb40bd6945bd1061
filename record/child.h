// A program that is started, watched and waited for.
#ifndef MEMREPLAY_RECORD_CHILD_H_
#define MEMREPLAY_RECORD_CHILD_H_

#include <sys/types.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace memreplay {

struct ChildOptions {
  std::vector<std::string> words;                  // the program, looked for in PATH, and its words
  std::map<std::string, std::string> environment;  // beside and above what there is
  bool fixed_addresses = true;                     // address space randomisation off, children too
  std::string output;  // where its output goes: "" as ours, "-" to stderr, else a file
};

class Child {
 public:
  // Error: InvalidArgument, the program is not found or cannot be started.
  static absl::StatusOr<Child> Start(const ChildOptions& options);
  Child(Child&& other) noexcept : pid_(other.pid_) { other.pid_ = -1; }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child();  // kills what was not waited for

  pid_t pid() const { return pid_; }
  // Its exit status, 128 + N if signal N ended it; nothing yet after `milliseconds`.
  std::optional<int> Wait(int milliseconds);
  void Signal(int signal) const;

 private:
  explicit Child(pid_t pid) : pid_(pid) {}

  pid_t pid_;
};

}  // namespace memreplay

#endif  // MEMREPLAY_RECORD_CHILD_H_
