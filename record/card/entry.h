// The entry points of NVIDIA's libraries: which are modelled, which need to do nothing, and what is
// answered where neither is known.
#pragma once

#include <cstdint>
#include <string>

namespace memreplay::card {

struct Entry {
  const char* name;
  void* function;
  int cuda_from;  // of two entries of one name, the one with the highest version up to torch's
                  // holds
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

// A second name for an entry point.
#define ALSO(exported, name)                                                                      \
  static const ::memreplay::card::Entry also_##exported = {#exported,                             \
                                                           reinterpret_cast<void*>(&name), 0};    \
  __attribute__((section("card_entries"),                                                         \
                 used)) static const ::memreplay::card::Entry* const pointer_to_also_##exported = \
      &also_##exported;

// The four types of one function take the same arguments, but for the pointers' types.
#define ALSO_OF_FOUR_TYPES(library, stem, name) \
  ALSO(library##S##stem, name);                 \
  ALSO(library##D##stem, name);                 \
  ALSO(library##C##stem, name);                 \
  ALSO(library##Z##stem, name)

// The modelled entry point of this name for torch's CUDA version, or null.
void* FindEntry(const char* name);

// The code of a function that a loaded stub library exports, modelled or not; null if none does.
void* FindExport(const char* name);

// Calls f(name) for each modelled name.
template <typename F>
void ForEachEntry(F f);

// Something that decides a figure and is not known: it is said in the summary, with the number of
// calls. `what` is a sentence.
void Assume(const char* what);

// An entry point that is answered with an error because nobody knows what it would do; said in the
// summary. Returns `error`.
int Refuse(const char* library, const char* name, int error);

// The parts of the summary that are kept here, as JSON members.
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
