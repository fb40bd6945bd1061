// What collectives deliver: the bytes of other ranks if those are processes of this machine
// (Exchange); otherwise as if every rank held what this one holds.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "record/card/api/nccl.h"
#include "record/card/device/copies.h"
#include "record/card/device/device.h"
#include "record/card/device/entry.h"

namespace memreplay::card {
namespace {

enum Operation { kSum = 0, kProduct, kMax, kMin, kAverage };

size_t Width(int type) {
  static constexpr int kWidths[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
  return type >= 0 && type < 12 ? static_cast<size_t>(kWidths[type]) : 1;
}

void* ElementAt(void* base, size_t bytes) { return static_cast<char*>(base) + bytes; }
const void* ElementAt(const void* base, size_t bytes) {
  return static_cast<const char*>(base) + bytes;
}
size_t Index(int rank) { return static_cast<size_t>(rank); }

void Forget(const void* to, size_t size) {
  const auto [d, lock] = LockedDevice();
  d.known.Forget(Number(to), size);
}

Exchange::Message MessageOf(const void* from, size_t size) {
  Exchange::Message message;
  message.bytes.assign(size, '\0');
  message.known = ReadBytes(Number(from), message.bytes.data(), size);
  return message;
}

// Writes what was received, or makes the bytes unknown.
void Put(void* to, const Exchange::Message& heard, size_t begin, size_t size) {
  if (to == nullptr) return;
  if (heard.known && begin + size <= heard.bytes.size()) {
    WriteBytes(Number(to), heard.bytes.data() + begin, size);
  } else {
    Forget(to, size);
  }
}

template <typename T>
void Combine(std::string* bytes, const char* other, int operation) {
  for (size_t i = 0; i + sizeof(T) <= bytes->size(); i += sizeof(T)) {
    T value, more;
    std::memcpy(&value, bytes->data() + i, sizeof value);
    std::memcpy(&more, other + i, sizeof more);
    switch (operation) {
      case kProduct: value = static_cast<T>(value * more); break;
      case kMax: value = std::max(value, more); break;
      case kMin: value = std::min(value, more); break;
      default: value = static_cast<T>(value + more);
    }
    std::memcpy(bytes->data() + i, &value, sizeof value);
  }
}

template <typename T>
void Divide(std::string* bytes, int by) {
  for (size_t i = 0; i + sizeof(T) <= bytes->size(); i += sizeof(T)) {
    T value;
    std::memcpy(&value, bytes->data() + i, sizeof value);
    value = static_cast<T>(value / static_cast<T>(by));
    std::memcpy(bytes->data() + i, &value, sizeof value);
  }
}

// Returns false if the type or operation is not supported.
bool Combine(std::string* bytes, const char* other, int type, int operation) {
  if (operation < kSum || operation > kAverage) return false;
  switch (type) {
    case 0: Combine<int8_t>(bytes, other, operation); return true;
    case 1: Combine<uint8_t>(bytes, other, operation); return true;
    case 2: Combine<int32_t>(bytes, other, operation); return true;
    case 3: Combine<uint32_t>(bytes, other, operation); return true;
    case 4: Combine<int64_t>(bytes, other, operation); return true;
    case 5: Combine<uint64_t>(bytes, other, operation); return true;
    case 7: Combine<float>(bytes, other, operation); return true;
    case 8: Combine<double>(bytes, other, operation); return true;
    default: return false;
  }
}

// Reduces `count` elements of each message, from `begin` on.
void PutReduced(const Collective& c, const std::vector<Exchange::Message>& heard, size_t begin) {
  const size_t size = c.count * Width(c.type);
  Exchange::Message result;
  result.known = true;
  for (const Exchange::Message& message : heard) {
    result.known = result.known && message.known && begin + size <= message.bytes.size();
    if (!result.known) break;
    if (&message == &heard.front()) {
      result.bytes = message.bytes.substr(begin, size);
    } else {
      result.known = Combine(&result.bytes, message.bytes.data() + begin, c.type, c.operation);
    }
  }
  if (result.known && c.operation == kAverage) {
    if (c.type == 7) {
      Divide<float>(&result.bytes, c.communicator->ranks);
    } else if (c.type == 8) {
      Divide<double>(&result.bytes, c.communicator->ranks);
    } else {
      result.known = false;
    }
  }
  Put(c.to, result, 0, size);
}

void AssumeAlike() { Assume("the other ranks are assumed to send what this one holds"); }

// Finishes a collective as if every rank held what this one holds; above the size of a small copy
// the result is unknown.
void FinishAlone(const Collective& c) {
  const size_t size = c.count * Width(c.type);
  const int ranks = c.communicator->ranks, rank = c.communicator->rank;
  if (c.to == nullptr) return;  // reduced to another rank
  if (size <= TheDevice().settings.copy_limit) AssumeAlike();
  const auto copy = [size](void* to, const void* from) {
    if (from != to) Copy(to, from, size);
  };
  switch (c.call) {
    case Collective::kGather:
      if (c.peer != rank) return;
      [[fallthrough]];
    case Collective::kAllGather:
      for (int i = 0; i < ranks; ++i) copy(ElementAt(c.to, Index(i) * size), c.from);
      return;
    case Collective::kAllToAll:
      for (int i = 0; i < ranks; ++i) {
        copy(ElementAt(c.to, Index(i) * size), ElementAt(c.from, Index(rank) * size));
      }
      return;
    case Collective::kReduceScatter: copy(c.to, ElementAt(c.from, Index(rank) * size)); break;
    default: copy(c.to, c.from);
  }
  if (c.call == Collective::kBroadcast || ranks < 2) return;
  if (c.operation == kMax || c.operation == kMin || c.operation == kAverage) return;
  if (size <= TheDevice().settings.copy_limit) {
    const std::vector<Exchange::Message> all(Index(ranks), MessageOf(c.to, size));
    PutReduced(c, all, 0);
  } else {
    Forget(c.to, size);
  }
}

// A collective of an open group, or outside one, whose result is not there yet.
struct Pending {
  Collective collective;
  uint64_t told;  // number of the published message; 0: none
};
struct ToItself {
  const Communicator* communicator;
  const void* from;
  size_t size;
};
thread_local int depth = 0;
thread_local std::vector<Pending>* group = nullptr;
thread_local std::vector<ToItself>* to_itself = nullptr;

void Receive(const Collective& c) {
  const size_t size = c.count * Width(c.type);
  Exchange::Message heard;
  if (c.communicator->exchange != nullptr) {
    if (size <= TheDevice().settings.copy_limit) {
      if (!c.communicator->exchange->Receive(c.peer, &heard)) {
        Assume("a rank did not send data that this rank waited for");
      }
    }
    Put(c.to, heard, 0, size);
    return;
  }
  // When all ranks exchange with all, every other rank sends what this one sends itself.
  for (const ToItself& sent : *to_itself) {
    if (sent.communicator == c.communicator && sent.size == size) {
      if (size <= TheDevice().settings.copy_limit) AssumeAlike();
      Copy(c.to, sent.from, size);
      return;
    }
  }
  Forget(c.to, size);
}

// Returns whether this rank receives anything.
bool Reaches(const Collective& c) {
  return (c.call != Collective::kReduce && c.call != Collective::kGather) ||
         c.peer == c.communicator->rank;
}

void Finish(const Pending& pending) {
  const Collective& c = pending.collective;
  if (c.call == Collective::kReceive) return Receive(c);
  const Communicator& communicator = *c.communicator;
  const size_t size = c.count * Width(c.type);
  if (communicator.exchange == nullptr) return FinishAlone(c);
  if (pending.told == 0) {  // too large
    const bool keeps = c.call == Collective::kBroadcast ? c.peer == communicator.rank : !Reaches(c);
    const bool all = c.call == Collective::kAllGather || c.call == Collective::kAllToAll ||
                     c.call == Collective::kGather;
    if (!keeps) Forget(c.to, size * (all ? Index(communicator.ranks) : size_t{1}));
    return;
  }
  std::vector<Exchange::Message> heard(Index(communicator.ranks));
  for (int i = 0; i < communicator.ranks; ++i) {
    if (!communicator.exchange->Hear(pending.told, i, &heard[Index(i)])) {
      Assume("a rank did not join a collective in which this rank waited");
      return FinishAlone(c);
    }
  }
  if (!Reaches(c)) return;
  const size_t own = Index(communicator.rank) * size;
  switch (c.call) {
    case Collective::kAllReduce: return PutReduced(c, heard, 0);
    case Collective::kReduce: return PutReduced(c, heard, 0);
    case Collective::kReduceScatter: return PutReduced(c, heard, own);
    case Collective::kBroadcast: return Put(c.to, heard[Index(c.peer)], 0, size);
    default:
      for (int i = 0; i < communicator.ranks; ++i) {
        Put(ElementAt(c.to, Index(i) * size), heard[Index(i)],
            c.call == Collective::kAllToAll ? own : 0, size);
      }
  }
}

}  // namespace

void BeginGroup() {
  if (group == nullptr) {
    group = new std::vector<Pending>;
    to_itself = new std::vector<ToItself>;
  }
  ++depth;
}

void EndGroup() {
  if (depth == 0 || --depth > 0) return;
  const std::vector<Pending> begun = std::move(*group);
  group->clear();
  for (const Pending& pending : begun) Finish(pending);
  to_itself->clear();
}

void Begin(const Collective& c) {
  TheDevice().Launch();
  uint64_t told = 0;
  if (c.communicator->exchange != nullptr && c.call != Collective::kReceive) {
    const bool all = c.call == Collective::kReduceScatter || c.call == Collective::kAllToAll;
    const size_t size = c.count * Width(c.type) * (all ? Index(c.communicator->ranks) : size_t{1});
    if (size <= TheDevice().settings.copy_limit) {
      const bool gives = c.call != Collective::kBroadcast || c.peer == c.communicator->rank;
      told =
          c.communicator->exchange->Publish(gives ? MessageOf(c.from, size) : Exchange::Message());
    }
  }
  BeginGroup();
  group->push_back({c, told});
  EndGroup();
}

void Send(Communicator* communicator, const void* from, size_t count, int type, int to) {
  TheDevice().Launch();
  const size_t size = count * Width(type);
  if (communicator->exchange != nullptr) {
    if (size <= TheDevice().settings.copy_limit)
      communicator->exchange->Send(to, MessageOf(from, size));
  } else if (to == communicator->rank && depth > 0) {
    to_itself->push_back({communicator, from, size});
  }
}

}  // namespace memreplay::card
