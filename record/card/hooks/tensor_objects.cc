#include "record/card/hooks/tensor_objects.h"

#include <malloc.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>

namespace memreplay::card {
namespace {

// Sizes of c10::TensorImpl and what derives from it, from torch 2.1 on.
constexpr size_t kSmallest = 169;
constexpr size_t kLargest = 216;
constexpr int kCount = 32768;  // 7 MB; later ones come from malloc

struct Object {
  Object* next;
};

std::atomic_flag busy = ATOMIC_FLAG_INIT;
Object* first = nullptr;  // the first unused object; under `busy`
std::atomic<uint64_t> begin{0};
std::atomic<uint64_t> end{0};

// Holds the lock, or gives up after a while: after a fork, the holder may be gone.
class Hold {
 public:
  Hold() {
    for (int i = 0; i < 1000 && !holds_; ++i) {
      holds_ = !busy.test_and_set(std::memory_order_acquire);
    }
  }
  ~Hold() {
    if (holds_) busy.clear(std::memory_order_release);
  }
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;
  explicit operator bool() const { return holds_; }

 private:
  bool holds_ = false;
};

uint64_t Address(const void* memory) { return reinterpret_cast<uint64_t>(memory); }

}  // namespace

void SetTensorObjectsAside() {
  const Hold hold;
  if (!hold || first != nullptr) return;
  Object** last = &first;
  for (int i = 0; i < kCount; ++i) {
    auto* object = static_cast<Object*>(std::malloc(kLargest));
    if (object == nullptr) return;
    const bool follows = Address(object) == end.load() + sizeof(size_t);
    if (!follows) {  // the ones before lay in holes
      last = &first;
      begin.store(Address(object));
    }
    object->next = nullptr;
    *last = object;
    last = &object->next;
    end.store(Address(object) + malloc_usable_size(object));
  }
}

void* TakeTensorObject(size_t size) {
  if (size < kSmallest || size > kLargest || end.load(std::memory_order_relaxed) == 0)
    return nullptr;
  const Hold hold;
  if (!hold || first == nullptr) return nullptr;
  Object* object = first;
  first = object->next;
  return object;
}

bool GiveTensorObjectBack(void* memory) {
  if (Address(memory) < begin.load(std::memory_order_relaxed) ||
      Address(memory) >= end.load(std::memory_order_relaxed)) {
    return false;
  }
  // Even if someone freed this memory and malloc handed it out again, it is a chunk of malloc, and
  // one with room for an object will do.
  if (malloc_usable_size(memory) != kLargest) return false;
  const Hold hold;
  if (!hold) return false;
  auto* object = static_cast<Object*>(memory);
  object->next = first;
  first = object;
  return true;
}

}  // namespace memreplay::card
