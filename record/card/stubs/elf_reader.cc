#include "record/card/stubs/elf_reader.h"

#include <elf.h>

#include <cstring>
#include <map>

#include "record/card/stubs/files.h"

namespace memreplay::card {
namespace {

// The bytes of a file, read by offset. Every read is checked.
class Image {
 public:
  Image(const unsigned char* bytes, size_t size) : bytes_(bytes), size_(size) {}

  bool Has(uint64_t offset, uint64_t size) const {
    return offset <= size_ && size <= size_ - offset;
  }
  template <typename T>
  bool Read(uint64_t offset, T* out) const {
    if (!Has(offset, sizeof(T))) return false;
    std::memcpy(out, bytes_ + offset, sizeof(T));
    return true;
  }
  // Returns a zero-terminated string, or null.
  const char* Text(uint64_t offset) const {
    if (offset >= size_) return nullptr;
    const void* end = std::memchr(bytes_ + offset, 0, size_ - offset);
    return end == nullptr ? nullptr : reinterpret_cast<const char*>(bytes_ + offset);
  }

 private:
  const unsigned char* bytes_;
  size_t size_;
};

struct Dynamic {
  uint64_t strings = 0, symbols = 0, versions = 0, needs = 0;  // file offsets, 0: none
  uint64_t need_count = 0;
  uint64_t symbol_count = 0;
  std::vector<uint64_t> needed;
};

class ElfReader {
 public:
  ElfReader(const Image& image, SharedObject* object) : image_(image), object_(object) {}

  const char* Run() {
    if (!ReadHeaders()) return "not a 64-bit little-endian shared object";
    if (!ReadDynamicSection()) return "its dynamic section is damaged";
    if (dynamic_.strings == 0 || dynamic_.symbols == 0) return nullptr;  // links to nothing
    if (!ReadNeeded()) return "a needed library has no name";
    if (!ReadVersionNeeds()) return "its version table is damaged";
    if (!ReadSymbols()) return "its symbol table is damaged";
    return nullptr;
  }

 private:
  bool ReadHeaders() {
    if (!image_.Read(0, &header_)) return false;
    return std::memcmp(header_.e_ident, ELFMAG, SELFMAG) == 0 &&
           header_.e_ident[EI_CLASS] == ELFCLASS64 && header_.e_ident[EI_DATA] == ELFDATA2LSB &&
           header_.e_type == ET_DYN && header_.e_phentsize == sizeof(Elf64_Phdr);
  }

  // Returns the file offset of an address of the loaded object; 0 if no segment holds it.
  uint64_t OffsetOf(uint64_t address) const {
    for (int i = 0; i < header_.e_phnum; ++i) {
      Elf64_Phdr segment;
      if (!image_.Read(header_.e_phoff + i * sizeof segment, &segment)) return 0;
      if (segment.p_type == PT_LOAD && address >= segment.p_vaddr &&
          address - segment.p_vaddr < segment.p_filesz) {
        return address - segment.p_vaddr + segment.p_offset;
      }
    }
    return 0;
  }

  bool ReadDynamicSection() {
    for (int i = 0; i < header_.e_phnum; ++i) {
      Elf64_Phdr segment;
      if (!image_.Read(header_.e_phoff + i * sizeof segment, &segment)) return false;
      if (segment.p_type != PT_DYNAMIC) continue;
      for (uint64_t at = segment.p_offset;; at += sizeof(Elf64_Dyn)) {
        Elf64_Dyn entry;
        if (!image_.Read(at, &entry)) return false;
        if (entry.d_tag == DT_NULL) break;
        Take(entry);
      }
    }
    return hash_ == 0 && gnu_hash_ == 0 ? true : CountSymbols();
  }

  void Take(const Elf64_Dyn& entry) {
    switch (entry.d_tag) {
      case DT_NEEDED: dynamic_.needed.push_back(entry.d_un.d_val); break;
      case DT_STRTAB: dynamic_.strings = OffsetOf(entry.d_un.d_ptr); break;
      case DT_SYMTAB: dynamic_.symbols = OffsetOf(entry.d_un.d_ptr); break;
      case DT_VERSYM: dynamic_.versions = OffsetOf(entry.d_un.d_ptr); break;
      case DT_VERNEED: dynamic_.needs = OffsetOf(entry.d_un.d_ptr); break;
      case DT_VERNEEDNUM: dynamic_.need_count = entry.d_un.d_val; break;
      case DT_HASH: hash_ = OffsetOf(entry.d_un.d_ptr); break;
      case DT_GNU_HASH: gnu_hash_ = OffsetOf(entry.d_un.d_ptr); break;
    }
  }

  // Counts the dynamic symbols by the hash table, as ELF files do not state their number elsewhere.
  bool CountSymbols() {
    if (hash_ != 0) {
      uint32_t chains;
      if (!image_.Read(hash_ + 4, &chains)) return false;
      dynamic_.symbol_count = chains;
      return true;
    }
    uint32_t head[4];  // buckets, first hashed symbol, words of the filter, shift
    if (!image_.Read(gnu_hash_, &head)) return false;
    const uint64_t buckets = gnu_hash_ + sizeof head + uint64_t{head[2]} * 8;
    const uint64_t chains = buckets + uint64_t{head[0]} * 4;
    uint32_t last = 0;
    for (uint32_t i = 0; i < head[0]; ++i) {
      uint32_t first;
      if (!image_.Read(buckets + uint64_t{i} * 4, &first)) return false;
      if (first > last) last = first;
    }
    if (last < head[1]) {  // nothing is hashed: all of its symbols are undefined
      dynamic_.symbol_count = head[1];
      return true;
    }
    for (;; ++last) {
      uint32_t hash;
      if (!image_.Read(chains + uint64_t{last - head[1]} * 4, &hash)) return false;
      if ((hash & 1) != 0) break;
    }
    dynamic_.symbol_count = uint64_t{last} + 1;
    return true;
  }

  bool ReadNeeded() {
    for (const uint64_t name : dynamic_.needed) {
      const char* text = image_.Text(dynamic_.strings + name);
      if (text == nullptr) return false;
      object_->needed.push_back(text);
    }
    return true;
  }

  struct Need {
    std::string library, version;
  };

  bool ReadVersionNeeds() {
    uint64_t at = dynamic_.needs;
    for (uint64_t i = 0; at != 0 && i < dynamic_.need_count; ++i) {
      Elf64_Verneed need;
      if (!image_.Read(at, &need)) return false;
      const char* library = image_.Text(dynamic_.strings + need.vn_file);
      uint64_t aux = at + need.vn_aux;
      for (int k = 0; k < need.vn_cnt; ++k) {
        Elf64_Vernaux version;
        if (!image_.Read(aux, &version)) return false;
        const char* name = image_.Text(dynamic_.strings + version.vna_name);
        if (library == nullptr || name == nullptr) return false;
        needs_[version.vna_other & 0x7fff] = {library, name};
        aux += version.vna_next;
      }
      if (need.vn_next == 0) break;
      at += need.vn_next;
    }
    return true;
  }

  bool ReadSymbols() {
    if (!image_.Has(dynamic_.symbols, dynamic_.symbol_count * sizeof(Elf64_Sym))) return false;
    for (uint64_t i = 1; i < dynamic_.symbol_count; ++i) {
      Elf64_Sym symbol;
      if (!image_.Read(dynamic_.symbols + i * sizeof symbol, &symbol)) return false;
      if (symbol.st_shndx != SHN_UNDEF) continue;
      const char* name = image_.Text(dynamic_.strings + symbol.st_name);
      if (name == nullptr) return false;
      WantedSymbol wanted{name, "", ""};
      uint16_t version = 0;
      if (dynamic_.versions != 0 && !image_.Read(dynamic_.versions + i * 2, &version)) return false;
      if (const auto need = needs_.find(version & 0x7fff); need != needs_.end()) {
        wanted.library = need->second.library;
        wanted.version = need->second.version;
      }
      object_->wanted.push_back(wanted);
    }
    return true;
  }

  const Image& image_;
  SharedObject* object_;
  Elf64_Ehdr header_ = {};
  Dynamic dynamic_;
  uint64_t hash_ = 0, gnu_hash_ = 0;
  std::map<int, Need> needs_;
};

}  // namespace

bool ReadSharedObject(const char* name, const unsigned char* bytes, size_t size,
                      SharedObject* object, std::string* error) {
  const Image image(bytes, size);
  const char* problem = ElfReader(image, object).Run();
  if (problem == nullptr) return true;
  *error = std::string(name) + ": " + problem;
  return false;
}

bool ReadSharedObject(const char* path, SharedObject* object, std::string* error) {
  const MappedFile file(path);
  if (!file.ok()) {
    *error = std::string(path) + ": " + std::strerror(file.error());
    return false;
  }
  return ReadSharedObject(path, file.bytes(), file.size(), object, error);
}

}  // namespace memreplay::card
