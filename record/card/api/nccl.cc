// NCCL: this process is one rank of several that nobody runs. Small collectives are real, as if
// every rank held what this one holds.
#include <cstdint>
#include <cstring>
#include <string>

#include "record/card/control.h"
#include "record/card/copies.h"
#include "record/card/device.h"
#include "record/card/entry.h"

namespace memreplay::card {
namespace {

struct Communicator {
  int ranks, rank, card;
  std::uint64_t buffers;  // handle of what it takes of the card, 0 for nothing
};
struct UniqueId {
  char bytes[128];
};

constexpr int kUnhandledCudaError = 1;

// The next part of a communicator that this thread makes; ranks 0: nobody said.
thread_local int next_ranks = 0;
thread_local int next_rank = 0;

int make_on(int card, Communicator** out, int ranks, int rank) {
  Device& d = device();
  std::uint64_t buffers = 0;
  const std::uint64_t bytes = ranks > 1 ? d.settings.nccl : 0;
  if (bytes != 0) {
    const std::lock_guard<std::mutex> lock(d.mutex);
    buffers = d.cards[static_cast<std::size_t>(card)].create_page(bytes);
    if (buffers == 0) return kUnhandledCudaError;
  }
  Assume(("an NCCL communicator of several ranks assumed to take " + std::to_string(bytes >> 20) +
          " MiB of the card (--nccl changes it)")
             .c_str());
  *out = new Communicator{ranks, rank, card, buffers};
  return 0;
}

int make(Communicator** out, int ranks, int rank) {
  return make_on(current_card(), out, ranks, rank);
}

int destroy(const Communicator* communicator) {
  if (communicator == nullptr) return 0;
  if (communicator->buffers != 0) {
    Device& d = device();
    const std::lock_guard<std::mutex> lock(d.mutex);
    d.cards[static_cast<std::size_t>(communicator->card)].release_page(communicator->buffers);
  }
  delete communicator;
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
    const int error = make_on(cards == nullptr ? i : cards[i], &out[i], ranks, i);
    if (error != 0) return error;
  }
  return 0;
}
ENTRY(int, ncclCommSplit, const Communicator* from, int color, int, Communicator** out, void*) {
  constexpr int kNoColor = -1;
  if (color == kNoColor) {  // this rank is in no part
    *out = nullptr;
    return 0;
  }
  const int ranks = next_ranks, rank = next_rank;
  next_ranks = 0;
  if (ranks != 0) return make(out, ranks, rank);
  Assume("a part of an NCCL communicator assumed to have all ranks of the whole");
  return make(out, from->ranks, from->rank);
}
ENTRY(int, ncclCommDestroy, const Communicator* communicator) { return destroy(communicator); }
ALSO(ncclCommAbort, ncclCommDestroy);
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

template <typename T>
void multiply(std::string* bytes, int by) {
  for (std::size_t i = 0; i + sizeof(T) <= bytes->size(); i += sizeof(T)) {
    T value;
    std::memcpy(&value, bytes->data() + i, sizeof value);
    value = static_cast<T>(value * static_cast<T>(by));
    std::memcpy(bytes->data() + i, &value, sizeof value);
  }
}

enum Reduction { kSum = 0, kProduct = 1 };  // else what is equal stays as it is

// The sum of what every rank holds: small whole numbers and floats are true, all else is unknown.
void reduce(void* to, std::size_t count, int type, int operation, int ranks) {
  if ((operation != kSum && operation != kProduct) || ranks < 2) return;
  const std::size_t size = count * width(type);
  Device& d = device();
  if (operation == kSum && size <= d.settings.copy_limit) {
    std::string bytes(size, '\0');
    if (ReadBytes(number(to), bytes.data(), size)) {
      switch (type) {
        case 2: multiply<std::int32_t>(&bytes, ranks); break;
        case 4: multiply<std::int64_t>(&bytes, ranks); break;
        case 7: multiply<float>(&bytes, ranks); break;
        case 8: multiply<double>(&bytes, ranks); break;
        default: bytes.clear();
      }
      if (!bytes.empty()) {
        WriteBytes(number(to), bytes.data(), size);
        return;
      }
    }
  }
  const std::lock_guard<std::mutex> lock(d.mutex);
  d.known.forget(number(to), size);
}

ENTRY(int, ncclAllReduce, const void* from, void* to, std::size_t count, int type, int operation,
      const Communicator* communicator, void*) {
  share(from, to, count, type);
  reduce(to, count, type, operation, communicator->ranks);
  return 0;
}
ENTRY(int, ncclBroadcast, const void* from, void* to, std::size_t count, int type, int,
      Communicator*, void*) {
  return share(from, to, count, type);
}
ENTRY(int, ncclBcast, void*, std::size_t, int, int, Communicator*, void*) {
  device().launch();
  return 0;
}
ENTRY(int, ncclReduce, const void* from, void* to, std::size_t count, int type, int operation, int,
      const Communicator* communicator, void*) {
  if (to == nullptr || communicator == nullptr) return 0;
  share(from, to, count, type);
  reduce(to, count, type, operation, communicator->ranks);
  return 0;
}
ENTRY(int, ncclAllGather, const void* from, void* to, std::size_t count, int type,
      Communicator* communicator, void*) {
  const std::size_t size = count * width(type);
  for (int i = 0; i < communicator->ranks; ++i) {
    share(from, static_cast<char*>(to) + static_cast<std::size_t>(i) * size, count, type);
  }
  return 0;
}
ENTRY(int, ncclReduceScatter, const void* from, void* to, std::size_t count, int type,
      int operation, const Communicator* communicator, void*) {
  const std::size_t size = count * width(type);
  share(static_cast<const char*>(from) + static_cast<std::size_t>(communicator->rank) * size, to,
        count, type);
  reduce(to, count, type, operation, communicator->ranks);
  return 0;
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

void memreplay_card_next_communicator(int ranks, int rank) {
  memreplay::card::next_ranks = ranks;
  memreplay::card::next_rank = rank;
}
