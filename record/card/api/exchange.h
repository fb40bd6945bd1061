// What ranks that are real processes of one machine exchange: the bytes of small collectives and
// messages, as files in a shared folder. This also makes a barrier wait.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace memreplay::card {

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

}  // namespace memreplay::card
