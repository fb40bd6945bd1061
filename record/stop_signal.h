// Lets a long piece of work ask whether Ctrl-C was pressed.
#pragma once

#include <csignal>
#include <string_view>

namespace memreplay {

// Notes the first SIGINT, SIGTERM or, unless it was ignored (nohup), SIGHUP instead of ending the
// process. A second one acts as if there were no handler or, with kNoteAll and a second later, is
// noted too. The destructor restores the previous handlers. There may be one object at a time.
class StopSignal {
 public:
  enum Later { kAct, kNoteAll };
  explicit StopSignal(Later later = kAct);
  ~StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  bool received() const;
  std::string_view name() const;  // "SIGINT"; "" if none was received
  int exit_status() const;        // 128 and the signal's number, as of a shell
  // Returns the signal to pass on to a process that was started from here: the first signal that
  // was received (0 if there is none, or if the terminal sent it), and SIGKILL after a second one.
  int to_pass_on() const;

 private:
  struct sigaction interrupt_;
  struct sigaction terminate_;
  struct sigaction hang_up_;
};

}  // namespace memreplay
