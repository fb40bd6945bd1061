// Answers several files at once, each in a process of its own.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "proto/report.pb.h"

namespace memreplay {

// How many files are answered at once, and how many threads each answer may use. Their product is
// `jobs`, or the number of cores if that is 0.
struct Jobs {
  size_t processes = 1;
  size_t threads = 1;
};
Jobs ShareOut(size_t jobs, size_t files);

// Answers files, which Take() returns in order. If a process dies, its file has an error, as if it
// could not be read, and the other files are not affected. Memory: at most `processes` files are
// answered at a time, fewer while free memory is short, and at most twice as many answers wait.
class Processes {
 public:
  using Answer = absl::FunctionRef<absl::StatusOr<proto::Report>(const std::string& file)>;

  // This process must have no other threads. `files` and `answer` must outlive this object.
  Processes(const std::vector<std::string>& files, Answer answer, size_t processes);
  ~Processes();  // ends the processes that still run
  Processes(const Processes&) = delete;
  Processes& operator=(const Processes&) = delete;

  // Returns the answer about the next file in order.
  absl::StatusOr<proto::Report> Take(size_t file);

 private:
  struct Child {
    pid_t pid = 0;
    int pipe = -1;  // what it writes; -1: it has ended
    std::string written;
    int status = 0;
  };

  bool MayStart(size_t taking) const;
  absl::Status Start();
  void Wait();  // until some child has written or ended
  absl::StatusOr<proto::Report> Read(size_t file);

  const std::vector<std::string>& files_;
  Answer answer_;
  size_t processes_;
  std::map<size_t, Child> children_;  // by file
  size_t next_ = 0;                   // file to start
  size_t running_ = 0;
};

}  // namespace memreplay
