// What ranks that are real processes of one machine tell each other: the bytes of small collectives
// and messages, as files of a folder that they share. Also what makes a barrier one.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace memreplay::card {

// One communicator's part in it. A rank that is gone, or does not come for ten minutes (as long as
// PyTorch waits for NCCL), sends nothing.
class Exchange {
 public:
  // What an identity says of where ranks meet; "" if they cannot: they share no folder, or no
  // memreplay made the identity. `id` is of kIdentity bytes.
  static constexpr std::size_t kIdentity = 128;
  static void MakeIdentity(char* id);
  static std::string FolderOf(const char* id);

  Exchange(const std::string& folder, int ranks, int rank);
  ~Exchange();

  const std::string& folder() const { return folder_; }

  struct Message {
    bool known = false;  // false: whoever sent it does not know these bytes
    std::string bytes;
  };
  // One that all ranks read, and that is taken away when they must have; the next number.
  std::uint64_t Tell(const Message& message);
  bool Hear(std::uint64_t number, int rank, Message* out);
  // One for one rank.
  void Send(int to, const Message& message);
  bool Receive(int from, Message* out);

 private:
  std::string PathOf(char kind, std::uint64_t number, int from, int to) const;
  bool IsGone(int rank);
  bool Wait(const std::string& path, int rank, Message* out);

  std::string folder_;
  int rank_;
  std::uint64_t told_ = 0;
  std::vector<std::uint64_t> sent_, received_;  // by rank
  std::vector<pid_t> processes_;                // by rank; 0: not known yet
  int patience_;                                // seconds
};

}  // namespace memreplay::card
