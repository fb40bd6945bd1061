// NCCL's communicators and its calls; nccl_values.cc has what they deliver.
#include "record/card/api/nccl.h"

#include <signal.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>

#include "record/card/api/allocate.h"
#include "record/card/device/device.h"
#include "record/card/device/entry.h"
#include "record/card/stubs/files.h"

namespace memreplay::card {
namespace {

struct UniqueId {
  char bytes[Exchange::kIdentity];
};

constexpr int kUnhandledCudaError = 1;

// The next part of a communicator that this thread makes; ranks 0: not set.
thread_local int next_ranks = 0;
thread_local int next_rank = 0;

const char* ObjectOf(int ranks) { return ranks > 1 ? kNcclObject : kSingleNcclObject; }

// Makes a communicator for `caller`. The ranks meet in `folder`, which is "" if the others do not
// run.
int MakeOn(const void* caller, int card, Communicator** out, int ranks, int rank,
           const std::string& folder) {
  Device& d = TheDevice();
  uint64_t buffers = 0;
  const uint64_t bytes = ranks > 1 ? d.settings.nccl : 0;
  if (bytes != 0) {
    const std::lock_guard<std::mutex> lock(d.mutex);
    buffers = d.cards[static_cast<size_t>(card)].CreatePage(bytes);
    if (buffers == 0) return kUnhandledCudaError;
    d.outside.AllocatedBy("NCCL", "ncclCommInitRank", card, HandleOf(buffers, card), bytes);
  }
  Assume(("an NCCL communicator of several ranks is assumed to take " +
          std::to_string(bytes >> 20) + " MiB of the GPU (--nccl changes this)")
             .c_str());
  *out = new Communicator{ranks, rank, card, buffers};
  {
    const std::lock_guard<std::mutex> lock(d.mutex);
    d.outside.Made(ObjectOf(ranks), caller, card, Number(*out));
  }
  if (!folder.empty() && ranks > 1) {
    (*out)->exchange = std::make_unique<Exchange>(folder, ranks, rank);
  }
  return 0;
}

int Make(const void* caller, Communicator** out, int ranks, int rank, const UniqueId& id) {
  return MakeOn(caller, CurrentCard(), out, ranks, rank, Exchange::FolderOf(id.bytes));
}

int Destroy(const Communicator* communicator) {
  if (communicator == nullptr) return 0;
  TheDevice().Destroyed(ObjectOf(communicator->ranks), communicator);
  if (communicator->buffers != 0) {
    const auto [d, lock] = LockedDevice();
    d.outside.Freed(HandleOf(communicator->buffers, communicator->card));
    d.cards[static_cast<size_t>(communicator->card)].ReleasePage(communicator->buffers);
  }
  delete communicator;
  return 0;
}

DOES(ncclGetVersion, (int* version), *version = Versions().nccl)
DOES(ncclGetUniqueId, (UniqueId * id), Exchange::MakeIdentity(id->bytes))
ALSO(ncclCommGetUniqueId, ncclGetUniqueId);
ENTRY(int, ncclCommInitRank, Communicator** out, int ranks, UniqueId id, int rank) {
  return Make(__builtin_return_address(0), out, ranks, rank, id);
}
ENTRY(int, ncclCommInitRankConfig, Communicator** out, int ranks, UniqueId id, int rank, void*) {
  return Make(__builtin_return_address(0), out, ranks, rank, id);
}
ENTRY(int, ncclCommInitRankScalable, Communicator** out, int ranks, int rank, int,
      const UniqueId* ids, void*) {
  return Make(__builtin_return_address(0), out, ranks, rank, ids[0]);
}
ENTRY(int, ncclCommInitAll, Communicator** out, int ranks, MayBeNull<const int> cards) {
  for (int i = 0; i < ranks; ++i) {
    const int error =
        MakeOn(__builtin_return_address(0), cards == nullptr ? i : cards[i], &out[i], ranks, i, "");
    if (error != 0) return error;
  }
  return 0;
}
ENTRY(int, ncclCommSplit, Communicator* from, int color, int, Communicator** out, void*) {
  constexpr int kNoColor = -1;
  const int split = ++from->splits;  // every rank of the whole counts the same splits
  if (color == kNoColor) {           // this rank is in no part
    *out = nullptr;
    return 0;
  }
  const int ranks = next_ranks, rank = next_rank;
  next_ranks = 0;
  if (ranks != 0) {
    const std::string folder =
        from->exchange == nullptr
            ? ""
            : from->exchange->folder() + "-" + std::to_string(split) + "." + std::to_string(color);
    return MakeOn(__builtin_return_address(0), CurrentCard(), out, ranks, rank, folder);
  }
  Assume("part of a split NCCL communicator is assumed to have all ranks of the original");
  return MakeOn(__builtin_return_address(0), CurrentCard(), out, from->ranks, from->rank, "");
}
ENTRY(int, ncclCommDestroy, MayBeNull<const Communicator> communicator) {
  return Destroy(communicator);
}
ALSO(ncclCommAbort, ncclCommDestroy);
ENTRY(int, ncclCommFinalize, Communicator*) { return 0; }
DOES(ncclCommCount, (const Communicator* communicator, int* count), *count = communicator->ranks)
DOES(ncclCommUserRank, (const Communicator* communicator, int* rank), *rank = communicator->rank)
DOES(ncclCommCuDevice, (const Communicator* communicator, int* card), *card = communicator->card)
DOES(ncclCommGetAsyncError, (const Communicator*, int* error), *error = 0)
DOES(ncclCommRegister, (Communicator*, void*, size_t, void** handle), *handle = Pointer(16))
ENTRY(int, ncclCommDeregister, Communicator*, void*) { return 0; }
DOES(ncclGroupStart, (void), BeginGroup())
DOES(ncclGroupEnd, (void), EndGroup())
DOES(ncclRedOpCreatePreMulSum, (int* operation), *operation = 5)
ENTRY(int, ncclRedOpDestroy, int, Communicator*) { return 0; }
ENTRY(int, ncclMemAlloc, void** out, size_t bytes) {
  return Allocate("ncclMemAlloc", __builtin_return_address(0), out, bytes) == 0 ? 0 : 1;
}
ENTRY(int, ncclMemFree, void* address) {
  return reinterpret_cast<int (*)(void*)>(FindEntry("cudaFree"))(address) == 0 ? 0 : 1;
}

DOES(ncclAllReduce,
     (const void* from, void* to, size_t count, int type, int operation, Communicator* c, void*),
     Begin({Collective::kAllReduce, c, from, to, count, type, operation, 0}))
DOES(ncclReduce,
     (const void* from, void* to, size_t count, int type, int operation, int root, Communicator* c,
      void*),
     Begin({Collective::kReduce, c, from, to, count, type, operation, root}))
DOES(ncclReduceScatter,
     (const void* from, void* to, size_t count, int type, int operation, Communicator* c, void*),
     Begin({Collective::kReduceScatter, c, from, to, count, type, operation, 0}))
DOES(ncclBroadcast,
     (const void* from, void* to, size_t count, int type, int root, Communicator* c, void*),
     Begin({Collective::kBroadcast, c, from, to, count, type, 0, root}))
DOES(ncclBcast, (void* buffer, size_t count, int type, int root, Communicator* c, void*),
     Begin({Collective::kBroadcast, c, buffer, buffer, count, type, 0, root}))
DOES(ncclAllGather, (const void* from, void* to, size_t count, int type, Communicator* c, void*),
     Begin({Collective::kAllGather, c, from, to, count, type, 0, 0}))
DOES(ncclGather,
     (const void* from, void* to, size_t count, int type, int root, Communicator* c, void*),
     Begin({Collective::kGather, c, from, to, count, type, 0, root}))
DOES(ncclAlltoAll, (const void* from, void* to, size_t count, int type, Communicator* c, void*),
     Begin({Collective::kAllToAll, c, from, to, count, type, 0, 0}))
DOES(ncclSend, (const void* from, size_t count, int type, int to, Communicator* c, void*),
     Send(c, from, count, type, to))
DOES(ncclRecv, (void* to, size_t count, int type, int from, Communicator* c, void*),
     Begin({Collective::kReceive, c, nullptr, to, count, type, 0, from}))

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

void SetNextCommunicator(int ranks, int rank) {
  next_ranks = ranks;
  next_rank = rank;
}

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
