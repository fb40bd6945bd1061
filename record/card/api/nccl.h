// A communicator of NCCL, and what its collectives deliver.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "record/card/api/exchange.h"

namespace memreplay::card {

// What an ncclComm_t points to.
struct Communicator {
  int ranks, rank, card;
  uint64_t buffers;  // handle of the memory that it takes on the card, 0 for none
  int splits = 0;    // parts split off so far
  std::unique_ptr<Exchange> exchange = nullptr;  // null: the other ranks do not run
};

// Sets how many ranks the next part of a communicator has that this thread splits off, and which
// one this is.
void SetNextCommunicator(int ranks, int rank);

// One call of a collective, or one receive.
struct Collective {
  enum Call {
    kAllReduce,
    kReduce,
    kReduceScatter,
    kBroadcast,
    kAllGather,
    kAllToAll,
    kGather,
    kReceive
  };
  Call call;
  Communicator* communicator;
  const void* from;
  void* to;
  size_t count;       // elements of a reduction's result, else of what one rank sends to one other
  int type;           // ncclDataType_t
  int operation = 0;  // ncclRedOp_t of a reduction
  int peer = 0;       // the root, or the rank that a receiver receives from
};

// Sends what this rank contributes at once; the result is there when the call returns or, in a
// group, when the group ends. Small results are exact if the other ranks are processes of this
// machine; otherwise they are computed as if every rank held what this one holds.
void Begin(const Collective& collective);
void Send(Communicator* communicator, const void* from, size_t count, int type, int to);
void BeginGroup();
void EndGroup();

}  // namespace memreplay::card
