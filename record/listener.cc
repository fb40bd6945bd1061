#include "record/listener.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include "trace/value/status_macros.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

constexpr int kStep = 20;  // milliseconds

bool IsSame(int a, int b) {
  struct stat of_a, of_b;
  return fstat(a, &of_a) == 0 && fstat(b, &of_b) == 0 && of_a.st_dev == of_b.st_dev &&
         of_a.st_ino == of_b.st_ino;
}

// Opens a terminal like the one at `to`. Returns false if there is none, or none can be made.
bool OpenTerminal(int to, int* ours, int* its) {
  termios how;
  if (tcgetattr(to, &how) != 0) return false;
  *ours = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  std::array<char, 128> name;
  if (*ours < 0 || grantpt(*ours) != 0 || unlockpt(*ours) != 0 ||
      ptsname_r(*ours, name.data(), name.size()) != 0) {
    return false;
  }
  *its = open(name.data(), O_RDWR | O_NOCTTY | O_CLOEXEC);
  how.c_oflag &= ~static_cast<tcflag_t>(OPOST);  // the terminal that it is passed on to does that
  winsize size;
  return *its >= 0 && tcsetattr(*its, TCSANOW, &how) == 0 &&
         (ioctl(to, TIOCGWINSZ, &size) != 0 || ioctl(*its, TIOCSWINSZ, &size) == 0);
}

// Returns whether all was written. The reader may have ended, which is no reason to end.
bool WriteAll(int to, std::string_view text) {
  sigset_t pipe, before;
  sigemptyset(&pipe);
  sigaddset(&pipe, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &pipe, &before);
  bool is_open = true;
  while (is_open && !text.empty()) {
    const ssize_t wrote = write(to, text.data(), text.size());
    if (wrote < 0 && errno == EAGAIN) {
      pollfd room = {to, POLLOUT, 0};
      poll(&room, 1, kStep);
    } else if (wrote < 0 && errno != EINTR) {
      is_open = false;
    } else if (wrote > 0) {
      text.remove_prefix(static_cast<size_t>(wrote));
    }
  }
  const timespec now = {};
  if (!is_open) sigtimedwait(&pipe, nullptr, &now);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return is_open;
}

}  // namespace

Listener::~Listener() {
  CloseEnds();
  for (const Channel& channel : channels_) close(channel.from);
}

absl::Status Listener::AddChannel(int to, int* end) {
  int ours = -1;
  if (!OpenTerminal(to, &ours, end)) {
    if (ours >= 0) close(ours);
    int both[2];
    if (pipe2(both, O_CLOEXEC) != 0) {
      return absl::InternalError(StrCat("cannot make a pipe: ", std::strerror(errno)));
    }
    ours = both[0];
    *end = both[1];
  }
  fcntl(ours, F_SETFL, O_NONBLOCK);
  channels_.push_back({ours, to});
  return absl::OkStatus();
}

absl::Status Listener::Open(int output_to) {
  if (heard_ == nullptr) return absl::OkStatus();
  RETURN_IF_ERROR(AddChannel(output_to, &output_));
  if (IsSame(output_to, STDERR_FILENO)) {
    error_ = output_;
    return absl::OkStatus();
  }
  return AddChannel(STDERR_FILENO, &error_);
}

void Listener::CloseEnds() {
  if (error_ >= 0 && error_ != output_) close(error_);
  if (output_ >= 0) close(output_);
  output_ = error_ = -1;
}

void Listener::PassOn(int milliseconds) {
  std::vector<pollfd> waiting;
  for (const Channel& channel : channels_) waiting.push_back({channel.from, POLLIN, 0});
  poll(waiting.data(), waiting.size(), milliseconds);
  std::erase_if(channels_, [this](const Channel& channel) {
    if (PassOn(channel)) return false;
    close(channel.from);  // the process learns of it if nobody reads what it writes
    return true;
  });
}

void Listener::Leave() {
  if (channels_.empty() || fork() != 0) return;
  signal(SIGINT, SIG_IGN);  // it ends with those that write
  signal(SIGHUP, SIG_IGN);
  heard_ = [](std::string_view) {};
  constexpr int kFiles = 1024;  // more than this program has open, such as another end of a pipe
  for (int file = 0; file < kFiles; ++file) {
    if (std::none_of(channels_.begin(), channels_.end(), [file](const Channel& channel) {
          return file == channel.from || file == channel.to;
        })) {
      close(file);
    }
  }
  while (!channels_.empty()) PassOn(-1);
  _exit(0);
}

bool Listener::PassOn(const Channel& channel) {
  std::array<char, size_t{64} << 10> piece;
  while (true) {
    const ssize_t got = read(channel.from, piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return true;
    if (got <= 0) return false;  // EIO: nobody has the terminal open any more
    const std::string_view text(piece.data(), static_cast<size_t>(got));
    heard_(text);
    if (!WriteAll(channel.to, text)) return false;
    if (static_cast<size_t>(got) < piece.size()) return true;
  }
}

}  // namespace memreplay
