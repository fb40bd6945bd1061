#include "record/card/stubs/loaded_symbol.h"

#include <elf.h>
#include <link.h>

#include <cstdint>
#include <cstring>

namespace memreplay::card {
namespace {

struct Search {
  const char* library;
  size_t length;  // of its name that must be equal
  const char* name;
  void* found;
};

const char* FileName(const char* path) {
  const char* slash = std::strrchr(path, '/');
  return slash == nullptr ? path : slash + 1;
}

// Returns how many symbols the table has, by its hash table, in which the loader keeps pointers as
// they are after loading.
uint32_t SymbolCount(const uint32_t* hash, const uint32_t* gnu) {
  if (hash != nullptr) return hash[1];
  if (gnu == nullptr) return 0;
  const uint32_t buckets = gnu[0], first = gnu[1];
  const uint32_t* bucket = gnu + 4 + gnu[2] * 2;
  const uint32_t* chain = bucket + buckets;
  uint32_t last = 0;
  for (uint32_t i = 0; i < buckets; ++i) {
    if (bucket[i] > last) last = bucket[i];
  }
  if (last < first) return first;
  while ((chain[last - first] & 1) == 0) ++last;
  return last + 1;
}

int SearchObject(dl_phdr_info* info, size_t, void* data) {
  auto* search = static_cast<Search*>(data);
  if (std::strncmp(FileName(info->dlpi_name), search->library, search->length) != 0) return 0;
  const ElfW(Dyn)* dynamic = nullptr;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    if (info->dlpi_phdr[i].p_type == PT_DYNAMIC) {
      dynamic = reinterpret_cast<const ElfW(Dyn)*>(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
    }
  }
  if (dynamic == nullptr) return 0;
  const char* strings = nullptr;
  const ElfW(Sym)* symbols = nullptr;
  const uint32_t *hash = nullptr, *gnu = nullptr;
  for (; dynamic->d_tag != DT_NULL; ++dynamic) {
    const ElfW(Addr) at = dynamic->d_un.d_ptr;
    switch (dynamic->d_tag) {
      case DT_STRTAB: strings = reinterpret_cast<const char*>(at); break;
      case DT_SYMTAB: symbols = reinterpret_cast<const ElfW(Sym)*>(at); break;
      case DT_HASH: hash = reinterpret_cast<const uint32_t*>(at); break;
      case DT_GNU_HASH: gnu = reinterpret_cast<const uint32_t*>(at); break;
    }
  }
  if (strings == nullptr || symbols == nullptr) return 0;
  const uint32_t count = SymbolCount(hash, gnu);
  for (uint32_t i = 1; i < count; ++i) {
    if (symbols[i].st_shndx == SHN_UNDEF) continue;
    if (std::strcmp(strings + symbols[i].st_name, search->name) != 0) continue;
    search->found = reinterpret_cast<void*>(info->dlpi_addr + symbols[i].st_value);
    return 1;
  }
  return 0;
}

struct Where {
  ElfW(Addr) address;
  const char* path;
};
int HoldsAddress(dl_phdr_info* info, size_t, void* data) {
  auto* where = static_cast<Where*>(data);
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = info->dlpi_phdr[i];
    const ElfW(Addr) start = info->dlpi_addr + segment.p_vaddr;
    if (segment.p_type != PT_LOAD || where->address < start ||
        where->address - start >= segment.p_memsz) {
      continue;
    }
    where->path = info->dlpi_name;
    return 1;
  }
  return 0;
}

}  // namespace

void* LoadedSymbol(const char* library, const char* name) {
  Search search{library, std::strlen(library) + 1, name, nullptr};
  dl_iterate_phdr(SearchObject, &search);
  return search.found;
}

void* LoadedSymbolOf(const char* beginning, const char* name) {
  Search search{beginning, std::strlen(beginning), name, nullptr};
  dl_iterate_phdr(SearchObject, &search);
  return search.found;
}

const char* LoadedPath(const void* address) {
  Where where{reinterpret_cast<ElfW(Addr)>(address), ""};
  dl_iterate_phdr(HoldsAddress, &where);
  return where.path;
}

const char* LoadedName(const void* address) { return FileName(LoadedPath(address)); }

}  // namespace memreplay::card
