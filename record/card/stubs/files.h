// Reads files as a whole, and writes them so that others see them whole or not at all.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <optional>
#include <string>

namespace memreplay::card {

// A file that is mapped into memory, read only.
class MappedFile {
 public:
  explicit MappedFile(const char* path) {
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) {
      error_ = errno;
      return;
    }
    const off_t size = lseek(file, 0, SEEK_END);
    if (size > 0) {
      void* map = mmap(nullptr, static_cast<size_t>(size), PROT_READ, MAP_PRIVATE, file, 0);
      if (map == MAP_FAILED) {
        error_ = errno;
      } else {
        bytes_ = static_cast<const unsigned char*>(map);
        size_ = static_cast<size_t>(size);
      }
    }
    close(file);
  }
  ~MappedFile() {
    if (bytes_ != nullptr) munmap(const_cast<unsigned char*>(bytes_), size_);
  }
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  bool ok() const { return error_ == 0; }
  int error() const { return error_; }
  const unsigned char* bytes() const { return bytes_; }
  size_t size() const { return size_; }

 private:
  const unsigned char* bytes_ = nullptr;
  size_t size_ = 0;
  int error_ = 0;
};

// Returns nullopt if the file cannot be read.
inline std::optional<std::string> ReadFile(const std::string& path) {
  const MappedFile file(path.c_str());
  if (!file.ok()) return std::nullopt;
  return std::string(reinterpret_cast<const char*>(file.bytes()), file.size());
}

// Returns false and leaves errno if the file cannot be written.
inline bool WriteFile(const std::string& path, const std::string& bytes) {
  const std::string part = path + "." + std::to_string(getpid());
  const int file = open(part.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (file < 0) return false;
  for (size_t done = 0; done < bytes.size();) {
    const ssize_t n = write(file, bytes.data() + done, bytes.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      const int error = errno;
      close(file);
      unlink(part.c_str());
      errno = error;
      return false;
    }
    done += static_cast<size_t>(n);
  }
  close(file);
  return std::rename(part.c_str(), path.c_str()) == 0;
}

}  // namespace memreplay::card
