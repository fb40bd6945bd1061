#include "record/child.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include "absl/algorithm/container.h"
#include "trace/value/status_macros.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

std::vector<std::string> MergedEnvironment(const std::map<std::string, std::string>& above) {
  std::vector<std::string> merged;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    if (above.count(text.substr(0, text.find('='))) == 0) merged.push_back(text);
  }
  for (const auto& [name, value] : above) merged.push_back(StrCat(name, "=", value));
  return merged;
}

std::vector<char*> Pointers(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

// Sends standard output and standard error to the listener, if one listens, else standard output,
// and standard error of a file, where `output` says. Runs in the child.
// Returns false with errno set on failure.
bool Redirect(const std::string& output, const Listener& listener) {
  if (listener.output() >= 0) {
    return dup2(listener.output(), STDOUT_FILENO) >= 0 &&
           dup2(listener.error(), STDERR_FILENO) >= 0;
  }
  if (output.empty()) return true;
  if (output == "-") return dup2(STDERR_FILENO, STDOUT_FILENO) >= 0;
  const int file = open(output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  return file >= 0 && dup2(file, STDOUT_FILENO) >= 0 && dup2(file, STDERR_FILENO) >= 0;
}

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

absl::StatusOr<Child> Child::Start(const ChildOptions& options) {
  const std::vector<std::string> environment = MergedEnvironment(options.environment);
  std::vector<char*> words = Pointers(options.words);
  std::vector<char*> variables = Pointers(environment);
  // An error in the child comes back through a pipe, which a successful start closes.
  int problem[2];
  if (pipe2(problem, O_CLOEXEC) != 0) {
    return absl::InternalError(StrCat("cannot make a pipe: ", std::strerror(errno)));
  }
  const bool is_file = !options.output.empty() && options.output != "-";
  auto listener = std::make_unique<Listener>(is_file ? nullptr : options.heard);
  if (const absl::Status opened =
          listener->Open(options.output == "-" ? STDERR_FILENO : STDOUT_FILENO);
      !opened.ok()) {
    return opened;
  }
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) {
    const int error = errno;
    close(problem[0]);
    close(problem[1]);
    return absl::InternalError(StrCat("cannot start a process: ", std::strerror(error)));
  }
  if (pid == 0) {
    if (options.fixed_addresses) {
      const int now = personality(0xffffffff);
      if (now >= 0) personality(static_cast<unsigned long>(now) | ADDR_NO_RANDOMIZE);
    }
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    // If this process is killed, so that it can pass nothing on, the script is asked to end.
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) _exit(127);
    if (Redirect(options.output, *listener)) execvpe(words[0], words.data(), variables.data());
    const int error = errno;
    [[maybe_unused]] const ssize_t told = write(problem[1], &error, sizeof(error));
    _exit(127);
  }
  close(problem[1]);
  listener->CloseEnds();
  int error = 0;
  ssize_t got = 0;
  do {
    got = read(problem[0], &error, sizeof(error));
  } while (got < 0 && errno == EINTR);
  close(problem[0]);
  if (got == sizeof(error)) {
    waitpid(pid, nullptr, 0);
    return absl::InvalidArgumentError(
        StrCat("cannot start ", options.words[0], ": ", std::strerror(error)));
  }
  return Child(pid, std::move(listener));
}

Child::~Child() {
  if (pid_ <= 0) return;
  kill(pid_, SIGKILL);
  while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

std::optional<int> Child::Wait(int milliseconds) {
  using std::chrono::steady_clock;
  constexpr int kStep = 20;
  const auto end = steady_clock::now() + std::chrono::milliseconds(milliseconds);
  while (true) {
    int status = 0;
    const pid_t ended = waitpid(pid_, &status, WNOHANG);
    if (ended == pid_) {
      pid_ = -1;
      return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    }
    if (ended < 0 && errno != EINTR) {
      pid_ = -1;
      return 127;
    }
    if (steady_clock::now() >= end) return std::nullopt;
    listener_->PassOn(kStep);
  }
}

void Child::Signal(int signal) const {
  if (pid_ > 0) kill(pid_, signal);
}

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
    if (absl::c_none_of(channels_, [file](const Channel& channel) {
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
