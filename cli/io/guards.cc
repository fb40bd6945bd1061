#include "cli/io/guards.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <limits>
#include <new>
#include <optional>
#include <string>

#include "report/words/sizes.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

constexpr uint64_t kMinMemory = uint64_t{64} << 20;

// Composed in advance, because there is no memory for it when it is needed.
char no_memory_line[512] = "";

[[noreturn]] void EndWith(const char* line, size_t length) {
  while (length > 0) {
    const ssize_t written = write(STDERR_FILENO, line, length);
    if (written <= 0) break;
    line += written;
    length -= static_cast<size_t>(written);
  }
  _exit(2);
}

[[noreturn]] void OutOfMemory() { EndWith(no_memory_line, std::strlen(no_memory_line)); }

// Returns the path of the mapping that holds `address`, from /proc/self/maps, or "" if that is
// unknown. Makes only calls that are allowed in a signal handler.
void PathOfMapping(uint64_t address, char* path, size_t room) {
  path[0] = 0;
  const int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;
  // "55d0-55d4 r--p 00000000 fe:00 1234   /a/path", read byte by byte.
  uint64_t bounds[2] = {0, 0};
  size_t field = 0, length = 0;
  bool blank = false, within = false;
  char buffer[4096];
  for (ssize_t got; (got = read(fd, buffer, sizeof(buffer))) > 0;) {
    for (ssize_t i = 0; i < got; ++i) {
      const char c = buffer[i];
      if (c == '\n') {
        if (within) {
          path[length] = 0;
          close(fd);
          return;
        }
        bounds[0] = bounds[1] = field = length = 0;
        blank = false;
      } else if (field < 2) {
        const int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
        if (digit >= 0) {
          bounds[field] = bounds[field] * 16 + static_cast<uint64_t>(digit);
        } else {
          ++field;
          blank = c == ' ';
        }
        if (field == 2) within = bounds[0] <= address && address < bounds[1];
      } else if (c == ' ' && field < 7) {
        blank = true;
      } else {
        if (blank && field < 7) ++field;  // permissions, offset, device, inode, path
        blank = false;
        // Control characters do not reach the terminal.
        if (within && field == 7 && length + 1 < room) {
          path[length++] = c >= ' ' && c < 127 ? c : '?';
        }
      }
    }
  }
  close(fd);
}

void OnBusError(int, siginfo_t* info, void*) {
  char line[1400], path[1024];
  PathOfMapping(reinterpret_cast<uint64_t>(info->si_addr), path, sizeof(path));
  const char* const parts[] = {"memreplay: ", path[0] != 0 ? path : "an input",
                               ": the file became shorter while it was being read, or its disk "
                               "failed; is it still being written?\n"};
  size_t length = 0;
  for (const char* part : parts) {
    for (; *part != 0; ++part) line[length++] = *part;
  }
  EndWith(line, length);
}

// Returns the number in a file of /proc or /sys, or `most` if there is none ("max").
uint64_t NumberIn(const std::string& path, uint64_t most) {
  std::ifstream file(path);
  uint64_t number = 0;
  return file >> number ? number : most;
}

}  // namespace

void HoldStandardDescriptors() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(fd, F_GETFD) >= 0) continue;
    const int held = open("/dev/null", fd == STDOUT_FILENO ? O_RDONLY : O_WRONLY);
    if (held >= 0 && held != fd) close(held);
  }
}

void ReportShrunkFiles() {
  struct sigaction action = {};
  action.sa_sigaction = OnBusError;
  action.sa_flags = SA_SIGINFO;
  sigemptyset(&action.sa_mask);
  sigaction(SIGBUS, &action, nullptr);
}

void LetWritesFail() {
  for (const int number : {SIGXFSZ, SIGPIPE}) {
    struct sigaction action = {};
    sigaction(number, nullptr, &action);
    if (action.sa_handler == SIG_IGN) continue;
    action.sa_handler = [](int) {};  // unlike SIG_IGN, it is not inherited
    action.sa_flags = SA_RESTART;
    sigaction(number, &action, nullptr);
  }
}

void EndWithParent() {
  const char* const named = std::getenv("MEMREPLAY_PARENT");
  if (named == nullptr) return;
  const auto parent = static_cast<pid_t>(std::strtol(named, nullptr, 10));
  unsetenv("MEMREPLAY_PARENT");  // what is started from here has another parent
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (parent > 0 && kill(parent, 0) != 0) raise(SIGTERM);  // it is gone already
}

uint64_t DefaultMemoryLimit() {
  const uint64_t most = std::numeric_limits<uint64_t>::max();
  const int64_t pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
  uint64_t memory = pages > 0 && page > 0 ? static_cast<uint64_t>(pages * page) : most;
  memory = std::min(memory, NumberIn("/sys/fs/cgroup/memory/memory.limit_in_bytes", most));
  // Control groups v2 have "0::/a/b"; a limit may be at any level.
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    if (!line.starts_with("0::/")) continue;
    for (std::string group = line.substr(3);; group.resize(group.rfind('/'))) {
      memory = std::min(memory, NumberIn(StrCat("/sys/fs/cgroup", group, "/memory.max"), most));
      if (group.empty() || group.rfind('/') == std::string::npos) break;
    }
  }
  return memory == most ? 0 : memory / 4 * 3;
}

absl::Status LimitMemory(uint64_t bytes) {
  std::set_new_handler(OutOfMemory);
  if (bytes != 0 && bytes < kMinMemory) {
    return InvalidArgument("expected at least 64 MiB, or 0 for none, found ", bytes, " bytes");
  }
  const std::string line =
      bytes == 0 ? "memreplay: there is not enough memory\n"
                 : StrCat("memreplay: this needs more than ", FormatSize(Bytes(bytes)),
                          " of memory, the current limit; --memory-limit SIZE sets another\n");
  std::snprintf(no_memory_line, sizeof(no_memory_line), "%s", line.c_str());
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // they map more than there is
  static const std::optional<rlimit> at_start = []() -> std::optional<rlimit> {
    rlimit limit = {};
    return getrlimit(RLIMIT_DATA, &limit) == 0 ? std::optional(limit) : std::nullopt;
  }();
  if (at_start.has_value()) {
    rlimit limit = *at_start;
    if (bytes != 0) limit.rlim_cur = std::min<rlim_t>(limit.rlim_max, bytes);
    setrlimit(RLIMIT_DATA, &limit);
  }
#endif
  return absl::OkStatus();
}

}  // namespace memreplay
