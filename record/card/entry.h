// The table of modelled entry points of NVIDIA's libraries, and the notes on those that are not.
#pragma once

#include <cstdint>
#include <string>

namespace memreplay::card {

// A modelled entry point.
struct Entry {
  const char* name;
  void* function;
  int cuda_from;  // of entries with one name, the highest up to torch's CUDA version is used
};

// Defines an entry point and puts it into the table:
//   ENTRY(int, cudaGetDevice, int* card) { ... }
#define ENTRY(result, name, ...) ENTRY_FROM(0, #name, result, name, __VA_ARGS__)
#define ENTRY_FROM(version, exported, result, name, ...)                                          \
  static result name(__VA_ARGS__);                                                                \
  static const ::memreplay::card::Entry entry_##name = {exported, reinterpret_cast<void*>(&name), \
                                                        version};                                 \
  __attribute__((section("card_entries"),                                                         \
                 used)) static const ::memreplay::card::Entry* const pointer_to_##name =          \
      &entry_##name;                                                                              \
  static result name(__VA_ARGS__)

// Defines a second name for an entry point.
#define ALSO(exported, name)                                                                      \
  static const ::memreplay::card::Entry also_##exported = {#exported,                             \
                                                           reinterpret_cast<void*>(&name), 0};    \
  __attribute__((section("card_entries"),                                                         \
                 used)) static const ::memreplay::card::Entry* const pointer_to_also_##exported = \
      &also_##exported;

// Defines the names of a function for four types, whose arguments differ in pointer types only.
#define ALSO_OF_FOUR_TYPES(library, stem, name) \
  ALSO(library##S##stem, name);                 \
  ALSO(library##D##stem, name);                 \
  ALSO(library##C##stem, name);                 \
  ALSO(library##Z##stem, name)

// Returns the modelled entry point of this name for torch's CUDA version, or null.
void* FindEntry(const char* name);

// Returns the code of a function that a loaded stub exports, modelled or not; null if none does.
void* FindExport(const char* name);

// Calls f(name) for each modelled name.
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
class Json;
void WriteNotes(Json* json);

extern "C" {  // the linker's names for the ends of the section
__attribute__((visibility("hidden"))) extern const Entry* const __start_card_entries[];
__attribute__((visibility("hidden"))) extern const Entry* const __stop_card_entries[];
}

template <typename F>
void ForEachEntry(F f) {
  for (const Entry* const* entry = __start_card_entries; entry != __stop_card_entries; ++entry) {
    f((*entry)->name);
  }
}

}  // namespace memreplay::card
