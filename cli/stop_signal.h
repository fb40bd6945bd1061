// Ctrl-C as a question that a long piece of work asks itself.
#ifndef MEMREPLAY_CLI_STOP_SIGNAL_H_
#define MEMREPLAY_CLI_STOP_SIGNAL_H_

#include <csignal>
#include <string_view>

namespace memreplay {

// While one lives, the first SIGINT or SIGTERM is only noted; a second one acts as
// if nobody had asked. Restores what was there before. One at a time.
class StopSignal {
 public:
  StopSignal();
  ~StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  bool received() const;
  std::string_view name() const;  // "SIGINT"; "" if none was received
  // What a program that was started from here is to be sent; 0: nothing, or the terminal sent it.
  int to_pass_on() const;

 private:
  struct sigaction interrupt_;
  struct sigaction terminate_;
};

}  // namespace memreplay

#endif  // MEMREPLAY_CLI_STOP_SIGNAL_H_
