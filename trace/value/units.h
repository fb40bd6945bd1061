// Quantities as types, so that a size is never added to the size_t of something else and an address
// is never used as a length. Plain integers appear only where bytes enter or leave memreplay.
#pragma once

#include <compare>
#include <cstdint>
#include <string>

namespace memreplay {

// A count of bytes. Subtraction below zero is a mistake of the caller; it wraps as unsigned
// arithmetic does and is caught by invariants.
class Bytes {
 public:
  constexpr Bytes() = default;
  constexpr explicit Bytes(uint64_t value) : value_(value) {}

  constexpr uint64_t value() const { return value_; }
  constexpr int64_t signed_value() const { return static_cast<int64_t>(value_); }

  constexpr auto operator<=>(const Bytes&) const = default;
  constexpr Bytes& operator+=(Bytes other) {
    value_ += other.value_;
    return *this;
  }
  constexpr Bytes& operator-=(Bytes other) {
    value_ -= other.value_;
    return *this;
  }
  friend constexpr Bytes operator+(Bytes a, Bytes b) { return Bytes(a.value_ + b.value_); }
  friend constexpr Bytes operator-(Bytes a, Bytes b) { return Bytes(a.value_ - b.value_); }
  friend constexpr Bytes operator*(Bytes a, uint64_t n) { return Bytes(a.value_ * n); }
  // Returns how many whole `b` fit into `a`; `b` must not be zero.
  friend constexpr uint64_t operator/(Bytes a, Bytes b) { return a.value_ / b.value_; }

 private:
  uint64_t value_ = 0;
};

constexpr Bytes KiB(uint64_t n) { return Bytes(n << 10); }
constexpr Bytes MiB(uint64_t n) { return Bytes(n << 20); }
constexpr Bytes GiB(uint64_t n) { return Bytes(n << 30); }

// Return `size` rounded up / down to a multiple of `unit`; `unit` must not be zero.
constexpr Bytes RoundUp(Bytes size, Bytes unit) {
  return Bytes((size.value() + unit.value() - 1) / unit.value() * unit.value());
}
constexpr Bytes RoundDown(Bytes size, Bytes unit) {
  return Bytes(size.value() / unit.value() * unit.value());
}

// A device address as the CUDA driver returns it. Zero is the null pointer.
class Address {
 public:
  constexpr Address() = default;
  constexpr explicit Address(uint64_t value) : value_(value) {}

  constexpr uint64_t value() const { return value_; }
  constexpr bool is_null() const { return value_ == 0; }

  constexpr auto operator<=>(const Address&) const = default;
  friend constexpr Address operator+(Address a, Bytes n) { return Address(a.value_ + n.value()); }
  friend constexpr Address operator-(Address a, Bytes n) { return Address(a.value_ - n.value()); }
  friend constexpr Bytes operator-(Address a, Address b) { return Bytes(a.value_ - b.value_); }

 private:
  uint64_t value_ = 0;
};

// The end of all CUDA device addresses (49 bits today). A recording's statement about memory at or
// beyond it is invalid.
inline constexpr Address kAddressesEnd = Address(uint64_t{1} << 56);
// More than any device has and than a process can address: a larger request runs out of memory on
// every device.
inline constexpr Bytes kMaxDeviceMemory = Bytes(uint64_t{1} << 48);

// A raw stream handle (cudaStream_t as an integer); 0 is the legacy default
// stream. PyTorch's free sets are ordered by this number.
class StreamHandle {
 public:
  constexpr StreamHandle() = default;
  constexpr explicit StreamHandle(uint64_t value) : value_(value) {}
  constexpr uint64_t value() const { return value_; }
  constexpr auto operator<=>(const StreamHandle&) const = default;

 private:
  uint64_t value_ = 0;
};

// Identity of an allocator pool as PyTorch prints it (segment_pool_id): (0,0) is the default, (k,0)
// belongs to a CUDA graph, (0,k) to a MemPool.
struct PoolId {
  uint64_t first = 0;
  uint64_t second = 0;
  constexpr bool is_default() const { return first == 0 && second == 0; }
  constexpr auto operator<=>(const PoolId&) const = default;
};

// The dense number of one allocation's life (alloc to free), from 0, in order of appearance. It is
// never reused within a Schedule.
using AllocationId = uint32_t;
inline constexpr AllocationId kNoAllocation = 0xffffffff;

}  // namespace memreplay
