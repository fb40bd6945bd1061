#include "record/card/device/entry.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <string_view>
#include <vector>

#include "record/card/device/cuda_errors.h"
#include "record/card/device/device.h"
#include "record/card/model/json.h"
#include "record/card/stubs/library_family.h"
#include "record/card/stubs/loaded_symbol.h"
#include "record/card/stubs/stub.h"

namespace memreplay::card {
namespace {

struct Unknown {
  const char* library;
  uint64_t calls;
  std::string answer;
  bool is_looked_up;         // rather than called
  std::string looked_up_by;  // a library; "" for the executable itself
};

struct Notes {
  std::mutex mutex;
  std::map<std::string, uint64_t> assumptions;
  std::map<std::string, Unknown> unknown;
  std::map<std::string, uint64_t> passed;  // entry points that compute or set something
  std::set<std::string> runtimes;          // libraries that have a copy of CUDA's runtime
};

Notes& TheNotes() {
  static Notes* instance = new Notes;
  return *instance;
}

// A loaded stub library. The table of a stub's entry is found through this list.
struct Loaded {
  StubTable* table;
  const StubEntry* begin;
  const StubEntry* end;
  const LibraryFamily* family;
};
constexpr int kMaxLibraries = 256;
Loaded loaded[kMaxLibraries];
std::atomic<int> loaded_count{0};

thread_local int last_error = kSuccess;

const char* NameOf(const StubTable& table, uint64_t offset) {
  return reinterpret_cast<const char*>(&table) + offset;
}

// Returns all entry points, sorted by name and, of one name, by the version that they are from.
const std::vector<const Entry*>& SortedEntries() {
  static const auto* sorted = [] {
    auto* all = new std::vector<const Entry*>;
    for (const Entry* const* entry = __start_card_entries; entry != __stop_card_entries; ++entry) {
      all->push_back(*entry);
    }
    std::sort(all->begin(), all->end(), [](const Entry* a, const Entry* b) {
      const int order = std::strcmp(a->name, b->name);
      return order != 0 ? order < 0 : a->cuda_from < b->cuda_from;
    });
    return all;
  }();
  return *sorted;
}

const char* EmptyText() { return ""; }
int Success() {
  TheDevice().Launch();
  return 0;
}

// Stands for a function that is not modelled. It is reached by a jump, so the return address and
// the arguments are the caller's.
extern "C" int memreplay_card_not_modelled(const StubEntry* entry) {
  for (int i = 0; i < loaded_count.load(std::memory_order_acquire); ++i) {
    const Loaded& library = loaded[i];
    if (entry < library.begin || entry >= library.end) continue;
    const char* name = NameOf(*library.table, entry->name);
    const char* soname = NameOf(*library.table, library.table->library);
    if (library.family == nullptr) return Refuse(soname, name, 1);
    if (IsInformative(*library.family, name)) {
      return Refuse(soname, name, library.family->not_supported);
    }
    Notes& n = TheNotes();
    const std::lock_guard<std::mutex> lock(n.mutex);
    ++n.passed[name];
    return 0;
  }
  return 1;
}

extern "C" void memreplay_card_not_modelled_entry();
#if defined(__x86_64__)
asm(R"(
.text
.globl memreplay_card_not_modelled_entry
.hidden memreplay_card_not_modelled_entry
.type memreplay_card_not_modelled_entry, @function
memreplay_card_not_modelled_entry:
  mov %r11, %rdi
  jmp memreplay_card_not_modelled
)");
#elif defined(__aarch64__)
asm(R"(
.text
.globl memreplay_card_not_modelled_entry
.hidden memreplay_card_not_modelled_entry
.type memreplay_card_not_modelled_entry, %function
memreplay_card_not_modelled_entry:
  mov x0, x16
  b memreplay_card_not_modelled
)");
#endif

void* FunctionFor(const LibraryFamily* family, const char* name) {
  if (void* function = FindEntry(name)) return function;
  if (std::string_view(name).ends_with("String")) return reinterpret_cast<void*>(&EmptyText);
  // Mathematics is counted as launches and does nothing else.
  if (family != nullptr && std::strncmp(family->name, "cublas", 6) == 0 &&
      !IsInformative(*family, name)) {
    return reinterpret_cast<void*>(&Success);
  }
  return reinterpret_cast<void*>(&memreplay_card_not_modelled_entry);
}

}  // namespace

// Called by each stub library when it is loaded.
extern "C" __attribute__((visibility("default"))) void memreplay_card_attach(StubTable* table) {
  if (table->versions.cuda != 0) Versions() = table->versions;
  const int index = loaded_count.load(std::memory_order_relaxed);
  auto* entries = reinterpret_cast<StubEntry*>(table + 1);
  const LibraryFamily* family = FamilyOfLibrary(NameOf(*table, table->library));
  for (uint64_t i = 0; i < table->entries; ++i) {
    entries[i].function = FunctionFor(family, NameOf(*table, entries[i].name));
  }
  if (index == kMaxLibraries) return;
  loaded[index] = {table, entries, entries + table->entries, family};
  loaded_count.store(index + 1, std::memory_order_release);
}

void* FindEntry(const char* name) {
  const std::vector<const Entry*>& entries = SortedEntries();
  auto entry = std::upper_bound(
      entries.begin(), entries.end(), name,
      [](const char* text, const Entry* other) { return std::strcmp(text, other->name) < 0; });
  while (entry != entries.begin() && std::strcmp((*--entry)->name, name) == 0) {
    if (CudaFrom((*entry)->cuda_from)) return (*entry)->function;
  }
  return nullptr;
}

void* FindExport(const char* name) {
  for (int i = 0; i < loaded_count.load(std::memory_order_acquire); ++i) {
    const Loaded& library = loaded[i];
    for (const StubEntry* entry = library.begin; entry != library.end; ++entry) {
      if (std::strcmp(NameOf(*library.table, entry->name), name) != 0) continue;
      const auto index = static_cast<uint64_t>(entry - library.begin);
      return reinterpret_cast<char*>(library.table) + library.table->code + index * kThunkSize;
    }
  }
  return nullptr;
}

void Assume(const char* what) {
  Notes& n = TheNotes();
  const std::lock_guard<std::mutex> lock(n.mutex);
  ++n.assumptions[what];
}

int& LastError() { return last_error; }
int Failed(int error) {
  if (error != kSuccess) last_error = error;
  return error;
}

int NullPointer(const void* function, int error) {
  const char* name = "";
  ForEachEntry([&](const Entry& entry) {
    if (entry.function == function && *name == 0) name = entry.name;
  });
  if (error == 0) {
    const LibraryFamily* family = FamilyOfFunction(name);
    error = family != nullptr ? family->invalid_value : kInvalidValue;
  }
  return std::strncmp(name, "cuda", 4) == 0 ? Failed(error) : error;
}

int Refuse(const char* library, const char* name, int error, const void* looked_up_by) {
  Notes& n = TheNotes();
  const std::lock_guard<std::mutex> lock(n.mutex);
  Unknown& unknown = n.unknown[name];
  unknown.library = library;
  if (looked_up_by != nullptr && unknown.calls == 0) {
    unknown.is_looked_up = true;
    unknown.looked_up_by = LoadedName(looked_up_by);
  }
  ++unknown.calls;
  if (unknown.answer.empty()) unknown.answer = "failed with error " + std::to_string(error);
  return error;
}

int RefuseRuntimeOf(const void* code, int error) {
  const char* library = LoadedName(code);
  Refuse(library, "CUDA's runtime", error);
  Notes& n = TheNotes();
  const std::lock_guard<std::mutex> lock(n.mutex);
  n.runtimes.insert(library);
  return error;
}

void WriteNotes(Json* json) {
  Notes& n = TheNotes();
  const std::lock_guard<std::mutex> lock(n.mutex);
  json->Key("assumptions").Open('[');
  for (const auto& [what, calls] : n.assumptions) {
    json->Open('{').Key("what").Value(what).Key("calls").Value(calls).Close('}');
  }
  json->Close(']').Key("unknown").Open('[');
  for (const auto& [name, unknown] : n.unknown) {
    if (unknown.is_looked_up && n.runtimes.count(unknown.looked_up_by) != 0) continue;
    json->Open('{').Key("library").Value(unknown.library).Key("name").Value(name);
    json->Key("calls").Value(unknown.calls).Key("answer").Value(unknown.answer).Close('}');
  }
  json->Close(']').Key("passed").Open('[');
  for (const auto& [name, calls] : n.passed) {
    json->Open('{').Key("name").Value(name).Key("calls").Value(calls).Close('}');
  }
  json->Close(']');
}

}  // namespace memreplay::card
