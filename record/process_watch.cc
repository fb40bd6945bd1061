#include "record/process_watch.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "record/gather.h"
#include "trace/bytes/json_scanner.h"
#include "trace/value/strings.h"
#include "trace/value/utf8.h"

namespace memreplay {
namespace {

namespace fs = std::filesystem;

constexpr double kBusy = 0.05;       // of one processor: less is waiting in small steps
constexpr size_t kMaxCommand = 120;  // bytes
constexpr size_t kMaxEnded = 4;      // processes that are named
constexpr double kLooksPerLimit = 20;

// Returns "python3 ../compile_worker/__main__.py --workers=2" of a process that runs.
std::string CommandOf(pid_t pid) {
  std::ifstream file(StrCat("/proc/", pid, "/cmdline"), std::ios::binary);
  const std::string words(std::istreambuf_iterator<char>(file), {});
  std::string command;
  for (size_t at = 0; at < words.size() && command.size() < kMaxCommand;) {
    const size_t end = std::min(words.find('\0', at), words.size());
    const fs::path word = words.substr(at, end - at);
    const bool is_long = word.is_absolute() && word.has_parent_path();
    StrAppend(&command, command.empty() ? "" : " ",
              command.empty() ? word.filename().string()
              : is_long       ? (word.parent_path().filename() / word.filename()).string()
                              : word.string());
    at = end + 1;
  }
  return ReplaceBadUtf8(command.substr(0, kMaxCommand), "?");
}

std::string EndOf(int status) {
  if (WIFSIGNALED(status)) {
    return StrCat("was ended by signal ", WTERMSIG(status), " (", strsignal(WTERMSIG(status)), ")");
  }
  return StrCat("ended with status ", WEXITSTATUS(status));
}

}  // namespace

// A row of /proc.
struct ProcessWatch::Seen {
  char state = 'R';
  pid_t parent = 0;
  uint64_t ticks = 0, started = 0;
  int status = 0;  // as of waitpid(), once it has ended

  static std::map<pid_t, Seen> All() {
    std::map<pid_t, Seen> all;
    std::error_code ignored;
    for (const fs::path& path : PathsIn("/proc", &ignored)) {
      const std::optional<int64_t> pid = ParseInt64(path.filename().string());
      if (!pid.has_value()) continue;
      std::ifstream file(path / "stat");
      std::string line;
      std::getline(file, line);
      const size_t end = line.rfind(')');  // of the name, in which anything may be
      if (end == line.npos) continue;
      std::istringstream fields(line.substr(end + 1));
      std::vector<std::string> words((std::istream_iterator<std::string>(fields)), {});
      constexpr size_t kParent = 1, kUser = 11, kSystem = 12, kStarted = 19, kStatus = 49;
      if (words.size() <= kStatus) continue;
      const auto number = [&](size_t field) { return ParseInt64(words[field]).value_or(0); };
      all[static_cast<pid_t>(*pid)] = {words[0][0], static_cast<pid_t>(number(kParent)),
                                       static_cast<uint64_t>(number(kUser) + number(kSystem)),
                                       static_cast<uint64_t>(number(kStarted)),
                                       static_cast<int>(number(kStatus))};
    }
    return all;
  }
};

uint64_t ProcessWatch::Update(const std::map<pid_t, Seen>& now) {
  const auto runs = [&now](pid_t pid, const Process& process) {
    const auto found = now.find(pid);
    return found != now.end() && found->second.started == process.started;
  };
  // One that its parent asked about is gone.
  for (auto& [pid, process] : processes_) {
    if (runs(pid, process)) continue;
    process.is_kept = false;
    if (process.end.empty()) {
      process.end = "ended";
      process.ended_at = Clock::now();
    }
  }
  uint64_t used = 0;
  for (bool is_new = true; is_new;) {  // until no process has a parent that was found after it
    is_new = false;
    for (const auto& [pid, seen] : now) {
      auto known = processes_.find(pid);
      const bool is_known = known != processes_.end() && known->second.started == seen.started;
      if (!is_known) {
        const auto parent = processes_.find(seen.parent);
        if (pid != root_ && (parent == processes_.end() || !runs(seen.parent, parent->second))) {
          continue;
        }
        is_new = true;
        known = processes_.insert_or_assign(pid, Process()).first;
        known->second.started = seen.started;
        known->second.parent = seen.parent;
        ++used;
      }
      Process& process = known->second;
      used += seen.ticks - std::exchange(process.ticks, seen.ticks);
      if (seen.state != 'Z' && seen.state != 'X') {
        // A child has its parent's words until it becomes another program.
        process.command = CommandOf(pid);
      } else if (process.end.empty()) {
        process.end = EndOf(seen.status);
        process.ended_at = Clock::now();
        process.is_kept = true;
      }
    }
  }
  return used;
}

std::string ProcessWatch::Look(uint64_t launches) {
  const Clock::time_point now = Clock::now();
  const std::chrono::duration<double> since = now - looked_;
  if (since < limit_ / kLooksPerLimit) return "";
  looked_ = now;
  const double ticks_per_second = static_cast<double>(sysconf(_SC_CLK_TCK));
  const bool is_busy = static_cast<double>(Update(Seen::All())) >
                       std::max(1.0, kBusy * since.count() * ticks_per_second);
  if (is_busy || std::exchange(launches_, launches) != launches) {
    // What ended before was not the end of everything.
    for (auto process = processes_.begin(); process != processes_.end();) {
      const bool is_over = !process->second.end.empty() && !process->second.is_kept &&
                           process->second.ended_at < quiet_since_;
      process = is_over ? processes_.erase(process) : std::next(process);
    }
    quiet_since_ = said_ = now;
    return "";
  }
  if (now - said_ < limit_) return "";
  said_ = now;
  return Sentence();
}

std::string ProcessWatch::Sentence() const {
  const std::chrono::duration<double> quiet = Clock::now() - quiet_since_;
  if (quiet < limit_) return "";
  std::vector<std::string> ended;
  size_t running = 0;
  for (const auto& [pid, process] : processes_) {
    const auto parent = processes_.find(process.parent);
    if (process.end.empty()) {
      ++running;
    } else if (parent != processes_.end() && parent->second.end.empty()) {
      ended.push_back(StrCat("process ", pid, " (", process.command, ") ", process.end,
                             ", and its parent ", process.parent, " waits"));
    }
  }
  std::string sentence = absl::StrFormat("nothing has happened for %.0f s: ", quiet.count());
  if (ended.empty()) {
    return StrCat(sentence, "no kernel was launched, and the script's ", running,
                  running == 1 ? " process waits" : " processes wait");
  }
  for (size_t i = 0; i < ended.size() && i < kMaxEnded; ++i) {
    StrAppend(&sentence, i == 0 ? "" : "; ", ended[i]);
  }
  if (ended.size() > kMaxEnded) StrAppend(&sentence, "; and ", ended.size() - kMaxEnded, " more");
  return sentence;
}

}  // namespace memreplay
