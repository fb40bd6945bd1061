#include "record/stop_signal.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdint>
#include <ctime>

namespace memreplay {
namespace {

// Global, because a signal handler can reach nothing else.
volatile std::sig_atomic_t received_signal = 0;  // the first
volatile std::sig_atomic_t is_repeated = 0;
volatile int64_t received_at = 0;  // milliseconds

// timeout(1) sends its signal twice, to the process and to its group, so a second signal counts
// only a second later.
void Note(int signal) {
  timespec time = {};
  clock_gettime(CLOCK_MONOTONIC, &time);
  const int64_t now = time.tv_sec * int64_t{1000} + time.tv_nsec / 1'000'000;
  if (received_signal == 0) {
    received_signal = signal;
    received_at = now;
  } else if (now - received_at > 1000) {
    is_repeated = 1;
  }
}

// Returns whether the terminal sends Ctrl-C to the script too.
bool TerminalSignalsAll() {
  const int terminal = open("/dev/tty", O_RDONLY | O_CLOEXEC);
  if (terminal < 0) return false;
  const bool foreground = tcgetpgrp(terminal) == getpgrp();
  close(terminal);
  return foreground;
}

}  // namespace

StopSignal::StopSignal(Later later) {
  received_signal = 0;
  is_repeated = 0;
  struct sigaction action = {};
  action.sa_handler = Note;
  action.sa_flags = later == kAct ? static_cast<int>(SA_RESETHAND) : 0;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, &interrupt_);
  sigaction(SIGTERM, &action, &terminate_);
  sigaction(SIGHUP, nullptr, &hang_up_);
  if (hang_up_.sa_handler != SIG_IGN) sigaction(SIGHUP, &action, nullptr);
}

StopSignal::~StopSignal() {
  sigaction(SIGINT, &interrupt_, nullptr);
  sigaction(SIGTERM, &terminate_, nullptr);
  sigaction(SIGHUP, &hang_up_, nullptr);
}

bool StopSignal::received() const { return received_signal != 0; }

std::string_view StopSignal::name() const {
  switch (received_signal) {
    case SIGINT: return "SIGINT";
    case SIGTERM: return "SIGTERM";
    case SIGHUP: return "SIGHUP";
    default: return "";
  }
}

int StopSignal::exit_status() const { return 128 + received_signal; }

int StopSignal::to_pass_on() const {
  if (is_repeated != 0) return SIGKILL;
  return received_signal == SIGINT && TerminalSignalsAll() ? 0 : received_signal;
}

}  // namespace memreplay
