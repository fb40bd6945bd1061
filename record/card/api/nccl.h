// A communicator of NCCL, and what its collectives bring.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "record/card/exchange.h"

namespace memreplay::card {

struct Communicator {
  int ranks, rank, card;
  std::uint64_t buffers;  // handle of what it takes of the card, 0 for nothing
  int splits = 0;         // parts split off so far
  std::unique_ptr<Exchange> exchange = nullptr;  // null: nobody runs the other ranks
};

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
  std::size_t count;  // elements: of a reduction's result, else of what one rank gives one other
  int type;           // ncclDataType_t
  int operation = 0;  // ncclRedOp_t of a reduction
  int peer = 0;       // the root, or whom a receiver hears
};

// What this rank gives goes out at once; what it gets is there when the call returns, or in a group
// when that ends. Small bytes are true where the other ranks are processes of this machine, else as
// if every rank held what this one holds.
void Begin(const Collective& collective);
void Send(Communicator* communicator, const void* from, std::size_t count, int type, int to);
void BeginGroup();
void EndGroup();

}  // namespace memreplay::card
