// What collectives deliver: the bytes of other ranks if those are processes of this machine
// (exchange.h); otherwise as if every rank held what this one holds.
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

std::size_t width(int type) {
  static constexpr int kWidths[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
  return type >= 0 && type < 12 ? static_cast<std::size_t>(kWidths[type]) : 1;
}

void* at(void* base, std::size_t bytes) { return static_cast<char*>(base) + bytes; }
const void* at(const void* base, std::size_t bytes) {
  return static_cast<const char*>(base) + bytes;
}
std::size_t index(int rank) { return static_cast<std::size_t>(rank); }

void forget(const void* to, std::size_t size) {
  Device& d = device();
  const std::lock_guard<std::mutex> lock(d.mutex);
  d.known.forget(number(to), size);
}

Exchange::Message message_of(const void* from, std::size_t size) {
  Exchange::Message message;
  message.bytes.assign(size, '\0');
  message.known = ReadBytes(number(from), message.bytes.data(), size);
  return message;
}

// Writes what was received, or makes the bytes unknown.
void put(void* to, const Exchange::Message& heard, std::size_t begin, std::size_t size) {
  if (to == nullptr) return;
  if (heard.known && begin + size <= heard.bytes.size()) {
    WriteBytes(number(to), heard.bytes.data() + begin, size);
  } else {
    forget(to, size);
  }
}

template <typename T>
void combine(std::string* bytes, const char* other, int operation) {
  for (std::size_t i = 0; i + sizeof(T) <= bytes->size(); i += sizeof(T)) {
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
void divide(std::string* bytes, int by) {
  for (std::size_t i = 0; i + sizeof(T) <= bytes->size(); i += sizeof(T)) {
    T value;
    std::memcpy(&value, bytes->data() + i, sizeof value);
    value = static_cast<T>(value / static_cast<T>(by));
    std::memcpy(bytes->data() + i, &value, sizeof value);
  }
}

// Returns false if the type or operation is not supported.
bool combine(std::string* bytes, const char* other, int type, int operation) {
  if (operation < kSum || operation > kAverage) return false;
  switch (type) {
    case 0: combine<std::int8_t>(bytes, other, operation); return true;
    case 1: combine<std::uint8_t>(bytes, other, operation); return true;
    case 2: combine<std::int32_t>(bytes, other, operation); return true;
    case 3: combine<std::uint32_t>(bytes, other, operation); return true;
    case 4: combine<std::int64_t>(bytes, other, operation); return true;
    case 5: combine<std::uint64_t>(bytes, other, operation); return true;
    case 7: combine<float>(bytes, other, operation); return true;
    case 8: combine<double>(bytes, other, operation); return true;
    default: return false;
  }
}

// Reduces `count` elements of each message, from `begin` on.
void put_reduced(const Collective& c, const std::vector<Exchange::Message>& heard,
                 std::size_t begin) {
  const std::size_t size = c.count * width(c.type);
  Exchange::Message result;
  result.known = true;
  for (const Exchange::Message& message : heard) {
    result.known = result.known && message.known && begin + size <= message.bytes.size();
    if (!result.known) break;
    if (&message == &heard.front()) {
      result.bytes = message.bytes.substr(begin, size);
    } else {
      result.known = combine(&result.bytes, message.bytes.data() + begin, c.type, c.operation);
    }
  }
  if (result.known && c.operation == kAverage) {
    if (c.type == 7) {
      divide<float>(&result.bytes, c.communicator->ranks);
    } else if (c.type == 8) {
      divide<double>(&result.bytes, c.communicator->ranks);
    } else {
      result.known = false;
    }
  }
  put(c.to, result, 0, size);
}

void AssumeAlike() { Assume("the other ranks are assumed to send what this one holds"); }

// Finishes a collective as if every rank held what this one holds; above the size of a small copy
// the result is unknown.
void finish_alone(const Collective& c) {
  const std::size_t size = c.count * width(c.type);
  const int ranks = c.communicator->ranks, rank = c.communicator->rank;
  if (c.to == nullptr) return;  // reduced to another rank
  if (size <= device().settings.copy_limit) AssumeAlike();
  const auto copy = [size](void* to, const void* from) {
    if (from != to) Copy(to, from, size);
  };
  switch (c.call) {
    case Collective::kGather:
      if (c.peer != rank) return;
      [[fallthrough]];
    case Collective::kAllGather:
      for (int i = 0; i < ranks; ++i) copy(at(c.to, index(i) * size), c.from);
      return;
    case Collective::kAllToAll:
      for (int i = 0; i < ranks; ++i) {
        copy(at(c.to, index(i) * size), at(c.from, index(rank) * size));
      }
      return;
    case Collective::kReduceScatter: copy(c.to, at(c.from, index(rank) * size)); break;
    default: copy(c.to, c.from);
  }
  if (c.call == Collective::kBroadcast || ranks < 2) return;
  if (c.operation == kMax || c.operation == kMin || c.operation == kAverage) return;
  if (size <= device().settings.copy_limit) {
    const std::vector<Exchange::Message> all(index(ranks), message_of(c.to, size));
    put_reduced(c, all, 0);
  } else {
    forget(c.to, size);
  }
}

// A collective of an open group, or outside one, whose result is not there yet.
struct Pending {
  Collective collective;
  std::uint64_t told;  // number of the published message; 0: none
};
struct ToItself {
  const Communicator* communicator;
  const void* from;
  std::size_t size;
};
thread_local int depth = 0;
thread_local std::vector<Pending>* group = nullptr;
thread_local std::vector<ToItself>* to_itself = nullptr;

void receive(const Collective& c) {
  const std::size_t size = c.count * width(c.type);
  Exchange::Message heard;
  if (c.communicator->exchange != nullptr) {
    if (size <= device().settings.copy_limit) {
      if (!c.communicator->exchange->Receive(c.peer, &heard)) {
        Assume("a rank did not send data that this rank waited for");
      }
    }
    put(c.to, heard, 0, size);
    return;
  }
  // When all ranks exchange with all, every other rank sends what this one sends itself.
  for (const ToItself& sent : *to_itself) {
    if (sent.communicator == c.communicator && sent.size == size) {
      if (size <= device().settings.copy_limit) AssumeAlike();
      Copy(c.to, sent.from, size);
      return;
    }
  }
  forget(c.to, size);
}

// Returns whether this rank receives anything.
bool reaches(const Collective& c) {
  return (c.call != Collective::kReduce && c.call != Collective::kGather) ||
         c.peer == c.communicator->rank;
}

void finish(const Pending& pending) {
  const Collective& c = pending.collective;
  if (c.call == Collective::kReceive) return receive(c);
  const Communicator& communicator = *c.communicator;
  const std::size_t size = c.count * width(c.type);
  if (communicator.exchange == nullptr) return finish_alone(c);
  if (pending.told == 0) {  // too large
    const bool keeps = c.call == Collective::kBroadcast ? c.peer == communicator.rank : !reaches(c);
    const bool all = c.call == Collective::kAllGather || c.call == Collective::kAllToAll ||
                     c.call == Collective::kGather;
    if (!keeps) forget(c.to, size * (all ? index(communicator.ranks) : std::size_t{1}));
    return;
  }
  std::vector<Exchange::Message> heard(index(communicator.ranks));
  for (int i = 0; i < communicator.ranks; ++i) {
    if (!communicator.exchange->Hear(pending.told, i, &heard[index(i)])) {
      Assume("a rank did not join a collective in which this rank waited");
      return finish_alone(c);
    }
  }
  if (!reaches(c)) return;
  const std::size_t own = index(communicator.rank) * size;
  switch (c.call) {
    case Collective::kAllReduce: return put_reduced(c, heard, 0);
    case Collective::kReduce: return put_reduced(c, heard, 0);
    case Collective::kReduceScatter: return put_reduced(c, heard, own);
    case Collective::kBroadcast: return put(c.to, heard[index(c.peer)], 0, size);
    default:
      for (int i = 0; i < communicator.ranks; ++i) {
        put(at(c.to, index(i) * size), heard[index(i)], c.call == Collective::kAllToAll ? own : 0,
            size);
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
  for (const Pending& pending : begun) finish(pending);
  to_itself->clear();
}

void Begin(const Collective& c) {
  device().launch();
  std::uint64_t told = 0;
  if (c.communicator->exchange != nullptr && c.call != Collective::kReceive) {
    const bool all = c.call == Collective::kReduceScatter || c.call == Collective::kAllToAll;
    const std::size_t size =
        c.count * width(c.type) * (all ? index(c.communicator->ranks) : std::size_t{1});
    if (size <= device().settings.copy_limit) {
      const bool gives = c.call != Collective::kBroadcast || c.peer == c.communicator->rank;
      told =
          c.communicator->exchange->Publish(gives ? message_of(c.from, size) : Exchange::Message());
    }
  }
  BeginGroup();
  group->push_back({c, told});
  EndGroup();
}

void Send(Communicator* communicator, const void* from, std::size_t count, int type, int to) {
  device().launch();
  const std::size_t size = count * width(type);
  if (communicator->exchange != nullptr) {
    if (size <= device().settings.copy_limit)
      communicator->exchange->Send(to, message_of(from, size));
  } else if (to == communicator->rank && depth > 0) {
    to_itself->push_back({communicator, from, size});
  }
}

}  // namespace memreplay::card
