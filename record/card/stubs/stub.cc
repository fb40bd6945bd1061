#include "record/card/stubs/stub.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "record/card/stubs/page.h"

namespace memreplay::card {
namespace {

#if defined(__x86_64__)
constexpr uint16_t kMachine = EM_X86_64;
constexpr uint32_t kAbsoluteAddress = R_X86_64_64;
#elif defined(__aarch64__)
constexpr uint16_t kMachine = EM_AARCH64;
constexpr uint32_t kAbsoluteAddress = R_AARCH64_ABS64;
#else
#error "Stub libraries are code for x86-64 or aarch64."
#endif

uint64_t RoundUp(uint64_t n, uint64_t unit) { return (n + unit - 1) / unit * unit; }

// Returns the hash of version names (System V ABI, 5.4).
uint32_t ElfHash(const std::string& name) {
  uint32_t hash = 0;
  for (const char c : name) {
    hash = (hash << 4) + static_cast<unsigned char>(c);
    const uint32_t high = hash & 0xf0000000;
    hash ^= high >> 24;
    hash &= ~high;
  }
  return hash;
}

// Returns the hash of DT_GNU_HASH.
uint32_t GnuHash(const std::string& name) {
  uint32_t hash = 5381;
  for (const char c : name) hash = hash * 33 + static_cast<unsigned char>(c);
  return hash;
}

// Bytes that grow. Everything is little endian, as this machine is.
class Bytes {
 public:
  uint64_t size() const { return bytes_.size(); }
  void Align(uint64_t unit) { bytes_.resize(RoundUp(bytes_.size(), unit)); }
  template <typename T>
  void Put(const T& value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void Put(const std::string& text) { bytes_ += text; }
  uint32_t PutString(const std::string& text) {
    const auto at = static_cast<uint32_t>(bytes_.size());
    bytes_.append(text.c_str(), text.size() + 1);
    return at;
  }
  template <typename T>
  void Overwrite(uint64_t at, const T& value) {
    std::memcpy(bytes_.data() + at, &value, sizeof value);
  }
  const std::string& text() const { return bytes_; }

 private:
  std::string bytes_;
};

class Writer {
 public:
  explicit Writer(const StubLibrary& library) : library_(library), exports_(library.symbols) {
    std::sort(exports_.begin(), exports_.end(), [this](const StubSymbol& a, const StubSymbol& b) {
      return BucketOf(GnuHash(a.name)) < BucketOf(GnuHash(b.name));
    });
  }

  std::string Write() {
    strings_.PutString("");
    NameEverything();
    LayOut();
    WriteTables();
    WriteCode();
    WriteData();
    WriteHeaders();
    return file_.text();
  }

 private:
  // Symbol 0 is empty, 1 is the core's function, and the exports follow, by bucket.
  static constexpr uint32_t kFirstExport = 2;
  uint64_t symbol_count() const { return exports_.size() + kFirstExport; }
  uint32_t bucket_count() const { return static_cast<uint32_t>(exports_.size() / 4 + 1); }
  uint32_t BucketOf(uint32_t hash) const { return hash % bucket_count(); }
  // Words of the filter by which most lookups of other libraries' names end: a power of two.
  uint32_t filter_count() const {
    uint32_t count = 1;
    while (count * uint64_t{64} < exports_.size() * kFilterBits) count *= 2;
    return count;
  }

  void NameEverything() {
    soname_ = strings_.PutString(library_.soname);
    core_ = strings_.PutString(library_.core);
    origin_ = strings_.PutString("$ORIGIN");
    attach_ = strings_.PutString(kAttachSymbol);
    for (const StubSymbol& symbol : exports_) {
      names_.push_back(strings_.PutString(symbol.name));
      if (symbol.version.empty() || versions_.count(symbol.version) != 0) continue;
      const auto index = static_cast<uint16_t>(versions_.size() + 2);  // 1: the library itself
      versions_[symbol.version] = {index, strings_.PutString(symbol.version)};
    }
  }

  // Decides where everything lies. File offsets and addresses are the same numbers.
  void LayOut() {
    uint64_t at = sizeof(Elf64_Ehdr) + kSegments * sizeof(Elf64_Phdr);
    const auto place = [&at](uint64_t* where, uint64_t size, uint64_t alignment) {
      *where = at = RoundUp(at, alignment);
      at += size;
    };
    place(&symbols_at_, symbol_count() * sizeof(Elf64_Sym), 8);
    place(&hash_at_, (4 + filter_count() * 2 + bucket_count() + exports_.size()) * 4, 8);
    place(&versym_at_, symbol_count() * 2, 8);
    place(&verdef_at_, (versions_.size() + 1) * (sizeof(Elf64_Verdef) + sizeof(Elf64_Verdaux)), 8);
    place(&relocation_at_, sizeof(Elf64_Rela), 8);
    place(&strings_at_, strings_.size(), 1);
    place(&code_at_, (exports_.size() + 1) * kThunkSize, kThunkSize);
    read_only_end_ = at;
    place(&data_at_, 0, kPage);
    place(&dynamic_at_, 24 * sizeof(Elf64_Dyn), 16);
    place(&attach_slot_, 8, 8);
    place(&table_at_, sizeof(StubTable) + exports_.size() * sizeof(StubEntry), 8);
    end_ = at;
  }

  void WriteTables() {
    file_.Put(std::string(symbols_at_, '\0'));
    file_.Put(Elf64_Sym{});
    file_.Put(
        Elf64_Sym{attach_, ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), STV_DEFAULT, SHN_UNDEF, 0, 0});
    for (size_t i = 0; i < exports_.size(); ++i) {
      // The section index only has to differ from "undefined": the file has no sections.
      file_.Put(Elf64_Sym{names_[i], ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), STV_DEFAULT, 1,
                          ThunkAt(i), kThunkSize});
    }
    WriteHashTable();
    file_.Align(8);
    file_.Put(uint16_t{0});
    file_.Put(uint16_t{1});
    for (const StubSymbol& symbol : exports_) {
      file_.Put(symbol.version.empty() ? uint16_t{1} : versions_[symbol.version].index);
    }
    file_.Align(8);
    WriteVersionDefinition(1, library_.soname, soname_, VER_FLG_BASE, versions_.empty());
    size_t left = versions_.size();
    for (uint16_t index = 2; left != 0; ++index) {
      for (const auto& [name, version] : versions_) {
        if (version.index != index) continue;
        WriteVersionDefinition(index, name, version.string, 0, --left == 0);
      }
    }
    file_.Align(8);
    file_.Put(Elf64_Rela{attach_slot_, ELF64_R_INFO(1, kAbsoluteAddress), 0});
    file_.Put(strings_.text());
  }

  void WriteHashTable() {
    std::vector<uint64_t> filter(filter_count());
    std::vector<uint32_t> buckets(bucket_count()), hashes;
    for (const StubSymbol& symbol : exports_) {
      const uint32_t hash = GnuHash(symbol.name);
      uint64_t& word = filter[hash / 64 % filter.size()];
      word |= uint64_t{1} << hash % 64 | uint64_t{1} << (hash >> kFilterShift) % 64;
      uint32_t& bucket = buckets[BucketOf(hash)];
      if (bucket == 0) bucket = static_cast<uint32_t>(hashes.size()) + kFirstExport;
      hashes.push_back(hash);
    }
    file_.Align(8);
    file_.Put(bucket_count());
    file_.Put(kFirstExport);
    file_.Put(filter_count());
    file_.Put(kFilterShift);
    for (const uint64_t word : filter) file_.Put(word);
    for (const uint32_t bucket : buckets) file_.Put(bucket);
    for (size_t i = 0; i < hashes.size(); ++i) {
      const bool is_last = i + 1 == hashes.size() || BucketOf(hashes[i]) != BucketOf(hashes[i + 1]);
      file_.Put((hashes[i] & ~uint32_t{1}) | uint32_t{is_last});
    }
  }

  void WriteVersionDefinition(uint16_t index, const std::string& name, uint32_t string,
                              uint16_t flags, bool last) {
    constexpr uint32_t kSize = sizeof(Elf64_Verdef) + sizeof(Elf64_Verdaux);
    file_.Put(Elf64_Verdef{VER_DEF_CURRENT, flags, index, 1, ElfHash(name), sizeof(Elf64_Verdef),
                           last ? 0 : kSize});
    file_.Put(Elf64_Verdaux{string, 0});
  }

  uint64_t ThunkAt(size_t symbol) const { return code_at_ + (symbol + 1) * kThunkSize; }
  uint64_t EntryAt(size_t symbol) const {
    return table_at_ + sizeof(StubTable) + symbol * sizeof(StubEntry);
  }

#if defined(__x86_64__)
  void WriteAttachCode() {
    Relative("\x48\x8d\x3d", table_at_);  // lea rdi, [table]
    Relative("\xff\x25", attach_slot_);   // jmp [attach]
  }
  void WriteThunkCode(uint64_t entry) {
    Relative("\x4c\x8d\x1d", entry);         // lea r11, [entry]
    file_.Put(std::string("\x41\xff\x23"));  // jmp [r11]
  }

  // Writes opcodes, then the distance from the instruction's end to `target`.
  void Relative(const std::string& opcode, uint64_t target) {
    file_.Put(opcode);
    file_.Put(static_cast<int32_t>(static_cast<int64_t>(target) -
                                   static_cast<int64_t>(file_.size() + 4)));
  }
#else
  void WriteAttachCode() {
    PutAddress(0, attach_slot_);      // x0 = attach
    file_.Put(uint32_t{0xf8408411});  // ldr x17, [x0], 8: the table follows
    file_.Put(kBranchToX17);
  }
  void WriteThunkCode(uint64_t entry) {
    PutAddress(16, entry);            // x16 = entry
    file_.Put(uint32_t{0xf9400211});  // ldr x17, [x16]
    file_.Put(kBranchToX17);
  }

  static constexpr uint32_t kBranchToX17 = 0xd61f0220;

  // Writes instructions that put the address of `target` into a register: adrp, add.
  void PutAddress(uint32_t to, uint64_t target) {
    constexpr uint64_t kUnit = 4096;  // of adrp, whatever the system's pages are
    const auto pages = static_cast<uint32_t>(target / kUnit - file_.size() / kUnit);
    file_.Put(0x90000000 | (pages & 3) << 29 | (pages >> 2 & 0x7ffff) << 5 | to);
    file_.Put(0x91000000 | static_cast<uint32_t>(target % kUnit) << 10 | to << 5 | to);
  }
#endif

  void WriteCode() {
    file_.Align(kThunkSize);
    WriteAttachCode();
    for (size_t i = 0; i < exports_.size(); ++i) {
      file_.Align(kThunkSize);
      WriteThunkCode(EntryAt(i));
    }
    file_.Align(kThunkSize);
  }

  void WriteData() {
    file_.Align(kPage);
    const auto dynamic = [this](int64_t tag, uint64_t value) {
      file_.Put(Elf64_Dyn{tag, {value}});
    };
    dynamic(DT_NEEDED, core_);
    dynamic(DT_SONAME, soname_);
    dynamic(DT_RUNPATH, origin_);
    dynamic(DT_GNU_HASH, hash_at_);
    dynamic(DT_STRTAB, strings_at_);
    dynamic(DT_STRSZ, strings_.size());
    dynamic(DT_SYMTAB, symbols_at_);
    dynamic(DT_SYMENT, sizeof(Elf64_Sym));
    dynamic(DT_VERSYM, versym_at_);
    dynamic(DT_VERDEF, verdef_at_);
    dynamic(DT_VERDEFNUM, versions_.size() + 1);
    dynamic(DT_RELA, relocation_at_);
    dynamic(DT_RELASZ, sizeof(Elf64_Rela));
    dynamic(DT_RELAENT, sizeof(Elf64_Rela));
    dynamic(DT_INIT, code_at_);
    dynamic(DT_NULL, 0);
    file_.Put(std::string(attach_slot_ - file_.size(), '\0'));
    file_.Put(uint64_t{0});
    // Names are stored as distances from the table, backwards into the strings.
    const auto distance = [this](uint32_t string) { return strings_at_ + string - table_at_; };
    file_.Put(
        StubTable{exports_.size(), distance(soname_), ThunkAt(0) - table_at_, library_.versions});
    for (const uint32_t name : names_) file_.Put(StubEntry{nullptr, distance(name)});
  }

  void WriteHeaders() {
    Elf64_Ehdr header = {};
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_ident[EI_DATA] = ELFDATA2LSB;
    header.e_ident[EI_VERSION] = EV_CURRENT;
    header.e_type = ET_DYN;
    header.e_machine = kMachine;
    header.e_version = EV_CURRENT;
    header.e_phoff = sizeof header;
    header.e_ehsize = sizeof header;
    header.e_phentsize = sizeof(Elf64_Phdr);
    header.e_phnum = kSegments;
    file_.Overwrite(0, header);
    const auto segment = [](uint32_t type, uint32_t flags, uint64_t from, uint64_t to,
                            uint64_t alignment) {
      return Elf64_Phdr{type, flags, from, from, from, to - from, to - from, alignment};
    };
    const Elf64_Phdr segments[kSegments] = {
        segment(PT_LOAD, PF_R | PF_X, 0, read_only_end_, kPage),
        segment(PT_LOAD, PF_R | PF_W, data_at_, end_, kPage),
        segment(PT_DYNAMIC, PF_R | PF_W, dynamic_at_, dynamic_at_ + 16 * sizeof(Elf64_Dyn), 8),
        segment(PT_GNU_STACK, PF_R | PF_W, 0, 0, 16),
    };
    file_.Overwrite(sizeof header, segments);
  }

  static constexpr int kSegments = 4;
  static constexpr uint32_t kFilterBits = 12;   // for each export
  static constexpr uint32_t kFilterShift = 26;  // of the hash, for its second bit
  struct Version {
    uint16_t index;
    uint32_t string;
  };

  const StubLibrary& library_;
  std::vector<StubSymbol> exports_;
  Bytes file_, strings_;
  std::vector<uint32_t> names_;
  std::map<std::string, Version> versions_;
  uint32_t soname_ = 0, core_ = 0, origin_ = 0, attach_ = 0;
  uint64_t symbols_at_ = 0, hash_at_ = 0, versym_at_ = 0, verdef_at_ = 0, relocation_at_ = 0,
           strings_at_ = 0, code_at_ = 0, read_only_end_ = 0, data_at_ = 0, dynamic_at_ = 0,
           attach_slot_ = 0, table_at_ = 0, end_ = 0;
};

}  // namespace

std::string WriteStub(const StubLibrary& library) { return Writer(library).Write(); }

}  // namespace memreplay::card
