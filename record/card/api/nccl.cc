// NCCL: this process is one rank of several that nobody runs. Small collectives are real, as if
// every rank held what this one holds.
#include <cstdint>
#include <cstring>

#include "record/card/copies.h"
#include "record/card/device.h"
#include "record/card/entry.h"

namespace memreplay::card {
namespace {

struct Communicator {
  int ranks, rank, card;
};
struct UniqueId {
  char bytes[128];
};

int make(Communicator** out, int ranks, int rank) {
  *out = new Communicator{ranks, rank, current_card()};
  return 0;
}

ENTRY(int, ncclGetVersion, int* version) {
  *version = versions().nccl;
  return 0;
}
ENTRY(int, ncclGetUniqueId, UniqueId* id) {
  std::memset(id->bytes, 7, sizeof id->bytes);
  return 0;
}
ALSO(ncclCommGetUniqueId, ncclGetUniqueId);
ENTRY(int, ncclCommInitRank, Communicator** out, int ranks, UniqueId, int rank) {
  return make(out, ranks, rank);
}
ENTRY(int, ncclCommInitRankConfig, Communicator** out, int ranks, UniqueId, int rank, void*) {
  return make(out, ranks, rank);
}
ENTRY(int, ncclCommInitRankScalable, Communicator** out, int ranks, int rank, int, UniqueId*,
      void*) {
  return make(out, ranks, rank);
}
ENTRY(int, ncclCommInitAll, Communicator** out, int ranks, const int* cards) {
  for (int i = 0; i < ranks; ++i) {
    out[i] = new Communicator{ranks, i, cards == nullptr ? i : cards[i]};
  }
  return 0;
}
ENTRY(int, ncclCommSplit, const Communicator* from, int, int, Communicator** out, void*) {
  Assume("a part of an NCCL communicator assumed to have all ranks of the whole");
  return make(out, from->ranks, from->rank);
}
ENTRY(int, ncclCommDestroy, Communicator* communicator) {
  delete communicator;
  return 0;
}
ENTRY(int, ncclCommAbort, Communicator*) { return 0; }
ENTRY(int, ncclCommFinalize, Communicator*) { return 0; }
ENTRY(int, ncclCommCount, const Communicator* communicator, int* count) {
  *count = communicator->ranks;
  return 0;
}
ENTRY(int, ncclCommUserRank, const Communicator* communicator, int* rank) {
  *rank = communicator->rank;
  return 0;
}
ENTRY(int, ncclCommCuDevice, const Communicator* communicator, int* card) {
  *card = communicator->card;
  return 0;
}
ENTRY(int, ncclCommGetAsyncError, const Communicator*, int* error) {
  *error = 0;
  return 0;
}
ENTRY(int, ncclCommRegister, Communicator*, void*, std::size_t, void** handle) {
  *handle = pointer(16);
  return 0;
}
ENTRY(int, ncclCommDeregister, Communicator*, void*) { return 0; }
ENTRY(int, ncclGroupStart, void) { return 0; }
ENTRY(int, ncclGroupEnd, void) { return 0; }
ENTRY(int, ncclRedOpCreatePreMulSum, int* operation) {
  *operation = 5;
  return 0;
}
ENTRY(int, ncclRedOpDestroy, int, Communicator*) { return 0; }
ENTRY(int, ncclMemAlloc, void** out, std::size_t bytes) {
  auto* allocate = reinterpret_cast<int (*)(void**, std::size_t)>(FindEntry("cudaMalloc"));
  return allocate(out, bytes) == 0 ? 0 : 1;
}
ENTRY(int, ncclMemFree, void* address) {
  return reinterpret_cast<int (*)(void*)>(FindEntry("cudaFree"))(address) == 0 ? 0 : 1;
}

std::size_t width(int type) {
  static constexpr int kWidths[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
  return type >= 0 && type < 12 ? static_cast<std::size_t>(kWidths[type]) : 1;
}

// One rank's share of a collective.
int share(const void* from, void* to, std::size_t count, int type) {
  device().launch();
  Assume("other ranks assumed to send what this one holds");
  if (from != to) Copy(to, from, count * width(type));
  return 0;
}
ENTRY(int, ncclAllReduce, const void* from, void* to, std::size_t count, int type, int,
      Communicator*, void*) {
  return share(from, to, count, type);
}
ENTRY(int, ncclBroadcast, const void* from, void* to, std::size_t count, int type, int,
      Communicator*, void*) {
  return share(from, to, count, type);
}
ENTRY(int, ncclBcast, void*, std::size_t, int, int, Communicator*, void*) {
  device().launch();
  return 0;
}
ENTRY(int, ncclReduce, const void* from, void* to, std::size_t count, int type, int, int,
      Communicator* communicator, void*) {
  if (to == nullptr || communicator == nullptr) return 0;
  return share(from, to, count, type);
}
ENTRY(int, ncclAllGather, const void* from, void* to, std::size_t count, int type,
      Communicator* communicator, void*) {
  const std::size_t size = count * width(type);
  for (int i = 0; i < communicator->ranks; ++i) {
    share(from, static_cast<char*>(to) + static_cast<std::size_t>(i) * size, count, type);
  }
  return 0;
}
ENTRY(int, ncclReduceScatter, const void* from, void* to, std::size_t count, int type, int,
      Communicator* communicator, void*) {
  const std::size_t size = count * width(type);
  return share(static_cast<const char*>(from) + static_cast<std::size_t>(communicator->rank) * size,
               to, count, type);
}
ENTRY(int, ncclSend, void) {
  device().launch();
  return 0;
}
ENTRY(int, ncclRecv, void* to, std::size_t count, int type, int, Communicator*, void*) {
  device().launch();
  Device& d = device();
  const std::lock_guard<std::mutex> lock(d.mutex);
  d.known.forget(number(to), count * width(type));
  return 0;
}

}  // namespace
}  // namespace memreplay::card
