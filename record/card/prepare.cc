#include "record/card/prepare.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <set>
#include <vector>

#include "record/card/device/entry.h"
#include "record/card/stubs/elf_reader.h"
#include "record/card/stubs/files.h"
#include "record/card/stubs/library_family.h"
#include "record/card/stubs/loaded_symbol.h"
#include "record/card/stubs/public_names.h"
#include "record/card/stubs/stub.h"

namespace memreplay::card {
namespace {

constexpr char kCoreName[] = "libmemreplay_card.so";
constexpr char kDriver[] = "libcuda.so.1";
// A compiler that is passed -lcuda, like Triton's, looks for this. The driver is already loaded.
constexpr char kDriverToLink[] = "libcuda.so";
constexpr char kLinksNothing[] =
    "/* A linker script: missing symbols are found in libcuda.so.1. */\n";
constexpr char kManagement[] = "libnvidia-ml.so.1";

// What is needed from one library: names, each with its version.
using Wanted = std::map<std::string, std::string>;

class Installation {
 public:
  // Returns false if the folder cannot be read. The first folder is torch's. Later ones add to the
  // libraries that torch needs, not others of the same family: code for another CUDA is of no use.
  bool LookThrough(const std::string& folder) {
    seen_.insert(folder + "/nvidia");  // these are NVIDIA's own libraries, not users of them
    const bool read = LookInto(folder);
    first_is_done_ = true;
    return read;
  }

  const std::map<std::string, Wanted>& libraries() const { return libraries_; }

  // Adds what is known by name alone: all that is modelled, all that NVIDIA's headers declare, what
  // files use without saying of which library, and the functions of the driver and NVML that torch
  // looks up. Must be called last.
  void Complete() {
    libraries_[kDriver];
    libraries_[kManagement];
    for (const std::string& name : by_name_) AddByName(name);
    ForEachEntry([this](const Entry& entry) { AddByName(entry.name); });
    for (size_t at = 0; at < kPublicNames.size();) {
      const size_t end = kPublicNames.find('\n', at);
      AddByName(std::string(kPublicNames.substr(at, end - at)));
      at = end + 1;
    }
  }

 private:
  bool LookInto(const std::string& folder) {
    if (!seen_.insert(folder).second) return true;
    DIR* open = opendir(folder.c_str());
    if (open == nullptr) return false;
    std::vector<std::string> folders;
    while (const dirent* entry = readdir(open)) {
      const std::string name = entry->d_name;
      const std::string path = folder + "/" + name;
      if (name == "." || name == "..") continue;
      // Some file systems do not say what an entry is; opendir() does.
      if (entry->d_type == DT_DIR || entry->d_type == DT_UNKNOWN) folders.push_back(path);
      if (entry->d_type == DT_DIR) continue;
      // Triton compiles this file on the user's machine and links it to the driver.
      if (name == "driver.c") TakeNames(path);
      if (name.find(".so") != std::string::npos && FamilyOfLibrary(name) == nullptr) {
        Take(path, name);
      }
    }
    closedir(open);
    for (const std::string& inner : folders) LookInto(inner);
    return true;
  }

  // Returns whether functions of this library are collected.
  bool Collects(const std::string& library) const {
    const LibraryFamily* family = FamilyOfLibrary(library);
    if (family == nullptr || !first_is_done_ || libraries_.count(library) != 0) {
      return family != nullptr;
    }
    return std::none_of(libraries_.begin(), libraries_.end(), [family](const auto& other) {
      return FamilyOfLibrary(other.first) == family;
    });
  }

  // Collects from one file. One that is no readable ELF file is skipped: packages have scripts and
  // texts with such names.
  void Take(const std::string& path, const std::string& name) {
    SharedObject object;
    std::string error;
    if (!ReadSharedObject(path.c_str(), &object, &error)) return;
    // A file need not name the library of a function: torch's libraries have loaded it before.
    for (const WantedSymbol& symbol : object.wanted) {
      if (FamilyOfFunction(symbol.name) != nullptr) by_name_.insert(symbol.name);
    }
    for (const std::string& library : object.needed) {
      if (Collects(library)) libraries_[library];
    }
    for (const WantedSymbol& symbol : object.wanted) {
      if (!symbol.library.empty() && Collects(symbol.library)) {
        libraries_[symbol.library][symbol.name] = symbol.version;
      }
    }
    if (name == "libc10_cuda.so") TakeNames(path);
  }

  // Collects the names of the driver's and NVML's functions in a file, as whole words.
  void TakeNames(const std::string& path) {
    const MappedFile file(path.c_str());
    const auto* bytes = reinterpret_cast<const char*>(file.bytes());
    for (size_t i = 0; i < file.size();) {
      size_t end = i;
      while (end < file.size() && IsInIdentifier(bytes[end])) ++end;
      // The shortest name is cuInit; a much longer word is no name.
      if (end - i >= 6 && end - i < 100 && (bytes[i] == 'c' || bytes[i] == 'n')) {
        const std::string word(bytes + i, end - i);
        const LibraryFamily* family = FamilyOfFunction(word);
        if (family != nullptr &&
            (family == FamilyOfLibrary(kDriver) || family == FamilyOfLibrary(kManagement))) {
          by_name_.insert(word);
        }
      }
      i = end + 1;
    }
  }

  static bool IsInIdentifier(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  }

  void AddByName(const std::string& name) {
    const LibraryFamily* family = FamilyOfFunction(name);
    if (family == nullptr) return;
    for (auto& [library, wanted] : libraries_) {
      if (FamilyOfLibrary(library) == family) wanted.emplace(name, VersionOf(wanted));
    }
  }

  // Returns the version of most of a library's functions.
  static std::string VersionOf(const Wanted& wanted) {
    for (const auto& [name, version] : wanted) {
      if (!version.empty()) return version;
    }
    return "";
  }

  std::map<std::string, Wanted> libraries_;
  std::set<std::string> by_name_;
  std::set<std::string> seen_;  // folders
  bool first_is_done_ = false;
};

// A version: "12.4.1" is {12, 4, 1}. Zeros if unknown.
struct Version {
  int part[3] = {0, 0, 0};
};
// Returns the version after `mark` in a text.
Version VersionAfter(const std::string& text, const char* mark) {
  Version version;
  size_t at = text.find(mark);
  if (at == std::string::npos) return version;
  at += std::strlen(mark);
  const size_t line = text.find('\n', at);
  while (at < text.size() && at < line && std::strchr("0123456789", text[at]) == nullptr) ++at;
  const char* number = text.c_str() + at;
  for (int& part : version.part) {
    char* end = nullptr;
    part = static_cast<int>(std::strtol(number, &end, 10));
    if (*end != '.') break;
    number = end + 1;
  }
  return version;
}

// Reads the version of an NVIDIA package named after its CUDA: nvidia-cudnn-cu12==9.1.0.70.
Version PackageVersion(const std::string& metadata, const std::string& package) {
  for (const char* cuda : {"-cu13", "-cu12", "-cu11"}) {
    const Version version = VersionAfter(metadata, ("Requires-Dist: " + package + cuda).c_str());
    if (version.part[0] != 0) return version;
  }
  return {};
}

std::string MetadataOf(const std::string& torch) {
  const std::string packages = torch + "/..";
  DIR* open = opendir(packages.c_str());
  if (open == nullptr) return "";
  std::string found;
  while (const dirent* entry = readdir(open)) {
    const std::string name = entry->d_name;
    if (name.compare(0, 6, "torch-") == 0 && name.find(".dist-info") != std::string::npos) {
      found = ReadFile(packages + "/" + name + "/METADATA").value_or("");
    }
  }
  closedir(open);
  return found;
}

LibraryVersions VersionsOf(const std::string& torch,
                           const std::map<std::string, Wanted>& libraries) {
  // The line is "cuda = '12.1'" in old releases and "cuda: Optional[str] = '12.4'" in others.
  const Version cuda = VersionAfter("\n" + ReadFile(torch + "/version.py").value_or(""), "\ncuda");
  const std::string metadata = MetadataOf(torch);
  Version cudnn = PackageVersion(metadata, "nvidia-cudnn");
  Version nccl = PackageVersion(metadata, "nvidia-nccl");
  // Wheels that contain NVIDIA's libraries state no versions; these are what most of them contain.
  if (cudnn.part[0] == 0) {
    cudnn = libraries.count("libcudnn.so.8") != 0 ? Version{{8, 7, 0}} : Version{{9, 1, 0}};
  }
  if (nccl.part[0] == 0) nccl = {{2, 21, 5}};
  LibraryVersions versions;
  versions.cuda = cuda.part[0] * 1000 + cuda.part[1] * 10;
  versions.cudnn =
      cudnn.part[0] * (cudnn.part[0] >= 9 ? 10000 : 1000) + cudnn.part[1] * 100 + cudnn.part[2];
  versions.nccl = nccl.part[0] * 10000 + nccl.part[1] * 100 + nccl.part[2];
  return versions;
}

bool FailedAt(const std::string& path, std::string* error) {
  *error = path + ": " + std::strerror(errno);
  return false;
}

bool MakeFolder(const std::string& path, std::string* error) {
  for (size_t slash = path.find('/', 1);; slash = path.find('/', slash + 1)) {
    const std::string upper = path.substr(0, slash);
    if (mkdir(upper.c_str(), 0755) != 0 && errno != EEXIST) return FailedAt(upper, error);
    if (slash == std::string::npos) return true;
  }
}

bool LinkCore(const std::string& out, std::string* error) {
  const std::string core = LoadedPath(reinterpret_cast<const void*>(&Prepare));
  const std::string link = out + "/" + kCoreName;
  const std::string part = link + "." + std::to_string(getpid());
  char real[4096];
  if (core.empty() || realpath(core.c_str(), real) == nullptr) return FailedAt(core, error);
  if (char linked[4096];
      realpath(link.c_str(), linked) != nullptr && std::strcmp(linked, real) == 0) {
    return true;
  }
  if (symlink(real, part.c_str()) != 0) return FailedAt(part, error);
  return std::rename(part.c_str(), link.c_str()) == 0 ? true : FailedAt(link, error);
}

}  // namespace

bool Prepare(const std::string& folders, const std::string& out, std::string* error) {
  Installation installation;
  std::string torch;
  for (size_t at = 0; at <= folders.size();) {
    const size_t end = std::min(folders.find(':', at), folders.size());
    const std::string folder = folders.substr(at, end - at);
    if (torch.empty()) torch = folder;
    if (!installation.LookThrough(folder) && folder == torch) return FailedAt(folder, error);
    at = end + 1;
  }
  if (installation.libraries().empty()) {
    *error = torch + ": no library in this folder links to CUDA; expected a CUDA build of torch";
    return false;
  }
  const LibraryVersions versions = VersionsOf(torch, installation.libraries());
  if (versions.cuda == 0) {
    *error = torch + "/version.py: it names no CUDA version; expected a CUDA build of torch";
    return false;
  }
  installation.Complete();
  if (!MakeFolder(out, error) || !LinkCore(out, error)) return false;
  std::string list = out + "/" + kCoreName + "\n";
  for (const auto& [soname, wanted] : installation.libraries()) {
    StubLibrary library{soname, kCoreName, versions, {}};
    for (const auto& [name, version] : wanted) library.symbols.push_back({name, version});
    const std::string path = out + "/" + soname;
    if (!WriteFile(path, WriteStub(library))) return FailedAt(path, error);
    list += path + "\n";
  }
  return (WriteFile(out + "/" + kDriverToLink, kLinksNothing) &&
          WriteFile(out + "/libraries", list)) ||
         FailedAt(out, error);
}

}  // namespace memreplay::card
