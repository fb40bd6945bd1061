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
#include "trace/value/status_macros.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

absl::Status CannotWrite(const std::string& path, const std::string& why) {
  return absl::InvalidArgumentError(StrCat(path, ": cannot write: ", why));
}

// Writes a file under a temporary name first, so that it appears whole or not at all.
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

bool Holds(const std::string& path, std::string_view content) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  char part[1 << 16];
  ssize_t got = 0;
  while ((got = read(fd, part, sizeof(part))) > 0 || (got < 0 && errno == EINTR)) {
    if (got < 0) continue;
    const std::string_view found(part, static_cast<size_t>(got));
    if (content.substr(0, found.size()) != found) break;
    content.remove_prefix(found.size());
  }
  close(fd);
  return got == 0 && content.empty();
}

// Checks that the folder is the user's own, and takes write permission from others: the script runs
// what is in it.
absl::Status CheckOwner(const std::string& folder) {
  struct stat found;
  if (stat(folder.c_str(), &found) != 0) return CannotWrite(folder, std::strerror(errno));
  if (found.st_uid != geteuid()) {
    return absl::InvalidArgumentError(StrCat(folder, ": expected a folder of user ", geteuid(),
                                             ", found one of user ", found.st_uid,
                                             "; set XDG_CACHE_HOME to another folder"));
  }
  if ((found.st_mode & (S_IWGRP | S_IWOTH)) != 0 && chmod(folder.c_str(), 0755) != 0) {
    return CannotWrite(folder, std::strerror(errno));
  }
  return absl::OkStatus();
}

}  // namespace

std::vector<std::string_view> RemedyNames() {
  constexpr std::string_view kLine = "\nNAME = \"";
  std::vector<std::string_view> names;
  for (size_t i = 0; i < kRecordFileCount; ++i) {
    const auto& [file, content] = kRecordFiles[i];
    const size_t found = content.find(kLine);
    if (!file.starts_with("memreplay_record/remedies/") || found == content.npos) continue;
    const std::string_view name = content.substr(found + kLine.size());
    names.push_back(name.substr(0, name.find('"')));
  }
  return names;
}

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
  std::error_code error;
  std::filesystem::create_directories(folders.python, error);
  if (error) {
    return CannotWrite(folders.python,
                       StrCat(error.message(), "; XDG_CACHE_HOME names another folder for it"));
  }
  for (const std::string& folder : {CacheFolder(), root, folders.python}) {
    RETURN_IF_ERROR(CheckOwner(folder));
  }
  for (size_t i = 0; i < kRecordFileCount; ++i) {
    const RecordFile& file = kRecordFiles[i];
    const bool is_library = file.name.find(".so") != std::string_view::npos;
    const std::string path = StrCat(is_library ? root : folders.python, "/", file.name);
    if (is_library) (file.name == "libmemreplay_pass.so" ? folders.pass : folders.core) = path;
    if (Holds(path, file.content)) continue;
    const std::string folder = path.substr(0, path.rfind('/'));
    std::filesystem::create_directories(folder, error);
    if (error) return CannotWrite(folder, error.message());
    RETURN_IF_ERROR(WriteFile(path, file.content));
    // A file takes the place where Python would keep compiled code, because the heaps of a process
    // that compiles and of one that finds it compiled differ.
    const std::string compiled = folder + "/__pycache__";
    if (is_library || std::filesystem::exists(compiled, error)) continue;
    RETURN_IF_ERROR(WriteFile(compiled, ""));
  }
  return folders;
}

}  // namespace memreplay
