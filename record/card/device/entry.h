// The table of modelled entry points of NVIDIA's libraries, and the notes on those that are not.
#pragma once

#include <cstdint>
#include <string>
#include <type_traits>

namespace memreplay::card {

class Json;

// A modelled entry point.
struct Entry {
  const char* name;
  void* function;
  int cuda_from;      // of entries with one name, the highest up to torch's CUDA version is used
  uint64_t pointers;  // bit i: argument i is a pointer
};

// Defines an entry point and puts it into the table:
//   ENTRY(int, cudaGetDevice, int* card) { ... }
// If a pointer is null that has a type (not void*) and is no MayBeNull, the body does not run, and
// the caller gets the error that the library has for an invalid argument.
#define ENTRY(result, name, ...) ENTRY_FROM(0, #name, result, name, __VA_ARGS__)
#define ENTRY_FROM(version, exported, result, name, ...)                 \
  static inline __attribute__((always_inline)) result name(__VA_ARGS__); \
  IN_TABLE(entry_##name, exported, name, version)                        \
  static inline __attribute__((always_inline)) result name(__VA_ARGS__)

// Defines an entry point that does one thing and succeeds:
//   DOES(cudaGetDevice, (int* card), *card = CurrentCard())
#define DOES(name, arguments, ...)                                  \
  static inline __attribute__((always_inline)) int name arguments;  \
  IN_TABLE(entry_##name, #name, name, 0)                            \
  static inline __attribute__((always_inline)) int name arguments { \
    __VA_ARGS__;                                                    \
    return 0;                                                       \
  }

// Defines a second name for an entry point.
#define ALSO(exported, name) IN_TABLE(also_##exported, #exported, name, 0)

#define IN_TABLE(entry, exported, name, version)                                            \
  static const ::memreplay::card::Entry entry = {                                           \
      exported, reinterpret_cast<void*>(&::memreplay::card::Checked<&name>::Call), version, \
      ::memreplay::card::Checked<&name>::kPointers};                                        \
  __attribute__((section("card_entries"),                                                   \
                 used)) static const ::memreplay::card::Entry* const pointer_to_##entry = &entry;

// Defines the names of a function for four types, whose arguments differ in pointer types only.
#define ALSO_OF_FOUR_TYPES(library, stem, name) ALSO_OF_TYPES(library, stem, stem, name)
// The same where the function has another name for the two complex types.
#define ALSO_OF_TYPES(library, real, complex, name) \
  ALSO(library##S##real, name);                     \
  ALSO(library##D##real, name);                     \
  ALSO(library##C##complex, name);                  \
  ALSO(library##Z##complex, name)

// A pointer that an entry point takes, and that may be null. It is passed like a pointer.
template <typename T>
class MayBeNull {
 public:
  MayBeNull(T* pointer) : pointer_(pointer) {}  // NOLINT: it stands for the pointer
  operator T*() const { return pointer_; }      // NOLINT: likewise
  T* operator->() const { return pointer_; }
  T* get() const { return pointer_; }

 private:
  T* pointer_;
};

// Answers a call whose pointer is null: returns `error`, or what the library of this function has
// for an invalid argument if that is 0.
int NullPointer(const void* function, int error);

// Says of an argument's type whether it is a pointer, and whether it must not be null.
template <typename T>
struct Argument {
  static constexpr bool kIsPointer = false, kIsRequired = false;
};
// A pointer must point to something, unless it is a handle or an address (void*).
template <typename T>
struct Argument<T*> {
  static constexpr bool kIsPointer = true, kIsRequired = !std::is_void_v<T>;
};
// A pointer that may be null.
template <typename T>
struct Argument<MayBeNull<T>> {
  static constexpr bool kIsPointer = true, kIsRequired = false;
};

// What is exported for an entry point: a function that looks for null pointers first.
template <auto F>
struct Checked;
// The same, with the types of its arguments.
template <typename R, typename... A, R (*F)(A...)>
struct Checked<F> {
  static constexpr uint64_t kPointers = [] {
    uint64_t pointers = 0, bit = 1;
    ((pointers |= Argument<A>::kIsPointer ? bit : 0, bit <<= 1), ...);
    return pointers;
  }();

  static R Call(A... arguments) {
    int error = 0;
    if ((IsMissing(arguments, &error) || ...)) {
      if constexpr (std::is_same_v<R, int>) {
        return NullPointer(reinterpret_cast<void*>(&Call), error);
      } else {
        return R();
      }
    }
    return F(arguments...);
  }

 private:
  // A handle's type may say what its library answers without it.
  template <typename T>
  static bool IsMissing(const T& argument, int* error) {
    if constexpr (Argument<T>::kIsRequired) {
      if (argument != nullptr) return false;
      if constexpr (requires { std::remove_pointer_t<T>::kErrorIfNull; }) {
        *error = std::remove_pointer_t<T>::kErrorIfNull;
      }
      return true;
    } else {
      return false;
    }
  }
};

// Returns the modelled entry point of this name for torch's CUDA version, or null.
void* FindEntry(const char* name);

// Returns the code of a function that a loaded stub exports, modelled or not; null if none does.
void* FindExport(const char* name);

// Calls f(entry) for each modelled name.
template <typename F>
void ForEachEntry(F f);

// Notes that an unknown figure was assumed. The summary shows the sentence `what` and its calls.
void Assume(const char* what);

// Notes in the summary that an entry point was answered with an error because its behaviour is
// unknown. Returns `error`. `looked_up_by` is an address in the code that only looked it up, if it
// did.
int Refuse(const char* library, const char* name, int error, const void* looked_up_by = nullptr);
// Notes that the library with this code has a copy of CUDA's runtime, which cannot run here, and
// drops the notes on what it looked up, because that is a hundred functions. Returns `error`.
int RefuseRuntimeOf(const void* code, int error);

// Writes the notes above as JSON members of the summary.
void WriteNotes(Json* json);

extern "C" {  // the linker's names for the ends of the section
__attribute__((visibility("hidden"))) extern const Entry* const __start_card_entries[];
__attribute__((visibility("hidden"))) extern const Entry* const __stop_card_entries[];
}

template <typename F>
void ForEachEntry(F f) {
  for (const Entry* const* entry = __start_card_entries; entry != __stop_card_entries; ++entry) {
    f(**entry);
  }
}

}  // namespace memreplay::card
