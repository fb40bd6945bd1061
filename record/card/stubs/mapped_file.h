// Maps a file into memory, read only.
#ifndef MEMREPLAY_RECORD_CARD_STUBS_MAPPED_FILE_H_
#define MEMREPLAY_RECORD_CARD_STUBS_MAPPED_FILE_H_

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>

namespace memreplay::card {

// A file as bytes in memory.
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

}  // namespace memreplay::card

#endif  // MEMREPLAY_RECORD_CARD_STUBS_MAPPED_FILE_H_
