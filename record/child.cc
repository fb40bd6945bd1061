#include "record/child.h"

#include <fcntl.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>

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

}  // namespace memreplay
