#include "record/card/api/exchange.h"

#include <signal.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "record/card/stubs/files.h"

namespace memreplay::card {
namespace {

constexpr char kMark[8] = "mrnccl1";
constexpr uint64_t kKept = 4096;  // messages that stay after they were published
constexpr int kPatience = 600;    // seconds
constexpr int kNoPatience = 1;    // seconds, after a rank did not answer

// What an identity says: who made it, and in which job.
struct Identity {
  char mark[8];
  uint64_t job;
  uint32_t process, count;
};

// Returns the folder of this job, or "" if its processes share none.
std::string JobFolder() {
  const char* folder = std::getenv("MEMREPLAY_CARD_EXCHANGE");
  return folder == nullptr ? "" : folder;
}

uint64_t Hash(const std::string& text) {
  uint64_t hash = 1469598103934665603U;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211U;
  return hash;
}

int64_t Now() {  // milliseconds
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

}  // namespace

void Exchange::MakeIdentity(char* id) {
  static std::atomic<uint32_t> count{0};
  std::memset(id, 7, kIdentity);
  const std::string folder = JobFolder();
  if (folder.empty()) return;
  Identity made{};
  std::memcpy(made.mark, kMark, sizeof kMark);
  made.job = Hash(folder);
  made.process = static_cast<uint32_t>(getpid());
  made.count = ++count;
  std::memcpy(id, &made, sizeof made);
}

std::string Exchange::FolderOf(const char* id) {
  Identity made;
  std::memcpy(&made, id, sizeof made);
  const std::string folder = JobFolder();
  if (folder.empty() || std::memcmp(made.mark, kMark, sizeof kMark) != 0 ||
      made.job != Hash(folder)) {
    return "";
  }
  return folder + "/nccl-" + std::to_string(made.process) + "-" + std::to_string(made.count);
}

Exchange::Exchange(const std::string& folder, int ranks, int rank)
    : folder_(folder),
      rank_(rank),
      sent_(static_cast<size_t>(ranks)),
      received_(static_cast<size_t>(ranks)),
      processes_(static_cast<size_t>(ranks)),
      patience_(kPatience) {
  mkdir(folder_.c_str(), 0700);
  WriteFile(folder_ + "/" + std::to_string(rank_), std::to_string(getpid()));
}

// Removes nothing: others may still read the messages, and the job's folder is removed as a whole.
Exchange::~Exchange() = default;

std::string Exchange::PathOf(char kind, uint64_t number, int from, int to) const {
  return folder_ + "/" + kind + std::to_string(number) + "-" + std::to_string(from) + "-" +
         std::to_string(to);
}

bool Exchange::IsGone(int rank) {
  pid_t& process = processes_[static_cast<size_t>(rank)];
  if (process == 0) {
    const auto text = ReadFile(folder_ + "/" + std::to_string(rank));
    if (!text.has_value()) return false;  // not there yet
    process = static_cast<pid_t>(std::atol(text->c_str()));
  }
  return kill(process, 0) != 0 && errno == ESRCH;
}

bool Exchange::Wait(const std::string& path, int rank, Message* out) {
  std::optional<std::string> bytes;
  const int64_t until = Now() + int64_t{patience_} * 1000;
  for (int tries = 0; !(bytes = ReadFile(path)).has_value(); ++tries) {
    if (tries > 100) {
      const bool gone = tries % 50 == 0 && IsGone(rank);
      if (gone && (bytes = ReadFile(path)).has_value()) break;
      if (gone || Now() > until) {
        patience_ = kNoPatience;
        return false;
      }
    }
    const timespec pause = {0, tries < 100 ? 50000 : 1000000};
    nanosleep(&pause, nullptr);
  }
  if (bytes->empty()) return false;
  out->known = bytes->front() == 1;
  out->bytes = bytes->substr(1);
  return true;
}

uint64_t Exchange::Publish(const Message& message) {
  const uint64_t number = ++told_;
  if (number > kKept) unlink(PathOf('c', number - kKept, rank_, rank_).c_str());
  WriteFile(PathOf('c', number, rank_, rank_), (message.known ? '\1' : '\0') + message.bytes);
  return number;
}

bool Exchange::Hear(uint64_t number, int rank, Message* out) {
  return Wait(PathOf('c', number, rank, rank), rank, out);
}

void Exchange::Send(int to, const Message& message) {
  const uint64_t number = ++sent_[static_cast<size_t>(to)];
  WriteFile(PathOf('p', number, rank_, to), (message.known ? '\1' : '\0') + message.bytes);
}

bool Exchange::Receive(int from, Message* out) {
  const uint64_t number = ++received_[static_cast<size_t>(from)];
  const std::string path = PathOf('p', number, from, rank_);
  if (!Wait(path, from, out)) return false;
  unlink(path.c_str());
  return true;
}

}  // namespace memreplay::card
