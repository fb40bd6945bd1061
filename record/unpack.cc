#include "record/unpack.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "record/files.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

absl::Status CannotWrite(const std::string& path, const std::string& why) {
  return absl::InvalidArgumentError(StrCat(path, ": cannot write: ", why));
}

// All of it or nothing, under a name of its own first.
absl::Status WriteFile(const std::string& path, std::string_view content) {
  std::string part = StrCat(path, ".XXXXXX");
  const int fd = mkostemp(part.data(), O_CLOEXEC);  // threads may unpack at once
  if (fd < 0) return CannotWrite(part, std::strerror(errno));
  fchmod(fd, 0644);
  while (!content.empty()) {
    const ssize_t written = write(fd, content.data(), content.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      const int error = errno;
      close(fd);
      unlink(part.c_str());
      return CannotWrite(part, std::strerror(error));
    }
    content.remove_prefix(static_cast<size_t>(written));
  }
  close(fd);
  if (rename(part.c_str(), path.c_str()) != 0) return CannotWrite(path, std::strerror(errno));
  return absl::OkStatus();
}

bool HasSize(const std::string& path, size_t size) {
  struct stat found;
  return stat(path.c_str(), &found) == 0 && static_cast<size_t>(found.st_size) == size;
}

}  // namespace

std::string CacheFolder() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  if (cache != nullptr && cache[0] == '/') return StrCat(cache, "/memreplay");
  const char* home = std::getenv("HOME");
  if (home != nullptr && home[0] == '/') return StrCat(home, "/.cache/memreplay");
  return StrCat("/tmp/memreplay-", getuid());
}

absl::StatusOr<RecordFolders> UnpackRecordFiles() {
  const std::string root = StrCat(CacheFolder(), "/record-", kRecordFilesDigest);
  RecordFolders folders;
  folders.python = StrCat(root, "/python");
  folders.cache = root;
  for (size_t i = 0; i < kRecordFileCount; ++i) {
    const RecordFile& file = kRecordFiles[i];
    const bool is_library = file.name.find(".so") != std::string_view::npos;
    const std::string path = StrCat(is_library ? root : folders.python, "/", file.name);
    if (is_library) folders.core = path;
    if (HasSize(path, file.content.size())) continue;
    std::error_code error;
    const std::string folder = path.substr(0, path.rfind('/'));
    std::filesystem::create_directories(folder, error);
    if (error) return CannotWrite(folder, error.message());
    if (const absl::Status written = WriteFile(path, file.content); !written.ok()) return written;
    // A file where Python would keep what it compiled: a process that compiles and one that finds
    // it compiled have heaps that differ.
    const std::string compiled = folder + "/__pycache__";
    if (is_library || std::filesystem::exists(compiled)) continue;
    if (const absl::Status written = WriteFile(compiled, ""); !written.ok()) return written;
  }
  return folders;
}

}  // namespace memreplay
