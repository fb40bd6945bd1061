// A communicator of NCCL, and what its collectives deliver.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace memreplay::card {

// What ranks that are real processes of one machine exchange: the bytes of small collectives and
// messages, as files in a shared folder. This also makes a barrier wait.

// One communicator's part in the exchange. A rank that has ended, or does not answer within ten
// minutes (as long as PyTorch waits for NCCL), sends nothing.
class Exchange {
 public:
  static constexpr size_t kIdentity = 128;  // bytes, as NCCL has them
  static void MakeIdentity(char* id);
  // Returns the folder in which the ranks of an identity meet; "" if they cannot because they share
  // no folder or the identity was not made by memreplay.
  static std::string FolderOf(const char* id);

  Exchange(const std::string& folder, int ranks, int rank);
  ~Exchange();

  const std::string& folder() const { return folder_; }

  struct Message {
    bool known = false;  // false: the sender does not know these bytes
    std::string bytes;
  };
  // Publishes a message for all ranks until all must have read it, and returns its number.
  uint64_t Publish(const Message& message);
  bool Hear(uint64_t number, int rank, Message* out);
  // Sends a message to one rank.
  void Send(int to, const Message& message);
  bool Receive(int from, Message* out);

 private:
  std::string PathOf(char kind, uint64_t number, int from, int to) const;
  bool IsGone(int rank);
  bool Wait(const std::string& path, int rank, Message* out);

  std::string folder_;
  int rank_;
  uint64_t told_ = 0;
  std::vector<uint64_t> sent_, received_;  // by rank
  std::vector<pid_t> processes_;           // by rank; 0: not known yet
  int patience_;                           // seconds
};

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
