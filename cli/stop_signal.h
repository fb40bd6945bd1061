// Ctrl-C as a question that a long piece of work asks itself.
#ifndef MEMREPLAY_CLI_STOP_SIGNAL_H_
#define MEMREPLAY_CLI_STOP_SIGNAL_H_

#include <csignal>
#include <string_view>

namespace memreplay {

// While one lives, the first SIGINT or SIGTERM is only noted. A second one acts as if there were no
// handler, or, with kNoteAll, is noted too. Restores what was there before. One at a time.
class StopSignal {
 public:
  enum Later { kAct, kNoteAll };
  explicit StopSignal(Later later = kAct);
  ~StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  bool received() const;
  std::string_view name() const;  // "SIGINT"; "" if none was received
  // What a program that was started from here is to be sent: the first signal (0: there is none, or
  // the terminal sent it), and SIGKILL after a second.
  int to_pass_on() const;

 private:
  struct sigaction interrupt_;
  struct sigaction terminate_;
};

}  // namespace memreplay

#endif  // MEMREPLAY_CLI_STOP_SIGNAL_H_
