// This library is preloaded into memreplay. The Nth call that writes, maps or places a file fails,
// as on a full or a broken disk, or one that starts a thread, as under a limit, or, with
// FAIL_SIGNAL, that signal comes at it. FAIL_CALL names the call, FAIL_AT is N from 1 on, or "all",
// FAIL_ERRNO the error; FAIL_COUNT is a file that gets a byte a call, to count them. Calls on
// descriptors 0 to 2 and on libraries being loaded are passed over.
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

namespace {

std::atomic<int> calls{0};

// Returns whether this call of `name` is the one to fail.
bool Fails(const char* name) {
  const char* const wanted = getenv("FAIL_CALL");
  if (wanted == nullptr || strcmp(wanted, name) != 0) return false;
  const int call = ++calls;
  if (const char* const count = getenv("FAIL_COUNT")) {
    using Open = int (*)(const char*, int, ...);
    static const auto real_open = reinterpret_cast<Open>(dlsym(RTLD_NEXT, "open"));
    using Write = ssize_t (*)(int, const void*, size_t);
    static const auto real_write = reinterpret_cast<Write>(dlsym(RTLD_NEXT, "write"));
    static const auto real_close = reinterpret_cast<int (*)(int)>(dlsym(RTLD_NEXT, "close"));
    const int fd = real_open(count, O_WRONLY | O_CREAT | O_APPEND, 0666);
    if (fd >= 0) {
      (void)!real_write(fd, ".", 1);
      real_close(fd);
    }
  }
  const char* const at = getenv("FAIL_AT");
  if (at == nullptr || (atoi(at) != call && strcmp(at, "all") != 0)) return false;
  if (const char* const signal = getenv("FAIL_SIGNAL")) kill(getpid(), atoi(signal));
  const char* const error = getenv("FAIL_ERRNO");
  errno = error != nullptr ? atoi(error) : ENOSPC;
  return true;
}

template <typename F>
F Real(const char* name) {
  return reinterpret_cast<F>(dlsym(RTLD_NEXT, name));
}

bool IsForWriting(int flags) { return (flags & O_ACCMODE) != O_RDONLY; }

}  // namespace

extern "C" {

int open(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = va_arg(arguments, mode_t);
  va_end(arguments);
  if (IsForWriting(flags) && Fails("open")) return -1;
  return Real<int (*)(const char*, int, ...)>("open")(path, flags, mode);
}

ssize_t write(int fd, const void* bytes, size_t size) {
  if (fd > 2 && Fails("write")) return -1;
  // A disk that is nearly full takes a part first.
  if (fd > 2 && Fails("short_write") && size > 1) size /= 2;
  return Real<ssize_t (*)(int, const void*, size_t)>("write")(fd, bytes, size);
}

int fsync(int fd) { return Fails("fsync") ? -1 : Real<int (*)(int)>("fsync")(fd); }

int close(int fd) {
  if (fd > 2 && Fails("close")) {
    Real<int (*)(int)>("close")(fd);
    return -1;
  }
  return Real<int (*)(int)>("close")(fd);
}

int rename(const char* from, const char* to) {
  return Fails("rename") ? -1 : Real<int (*)(const char*, const char*)>("rename")(from, to);
}

int linkat(int from_folder, const char* from, int to_folder, const char* to, int flags) {
  if (Fails("linkat")) return -1;
  return Real<int (*)(int, const char*, int, const char*, int)>("linkat")(from_folder, from,
                                                                          to_folder, to, flags);
}

int fchmod(int fd, mode_t mode) {
  return Fails("fchmod") ? -1 : Real<int (*)(int, mode_t)>("fchmod")(fd, mode);
}

void* mmap(void* address, size_t size, int protection, int flags, int fd, off_t offset) {
  if (fd >= 0 && Fails("mmap")) return MAP_FAILED;
  return Real<void* (*)(void*, size_t, int, int, int, off_t)>("mmap")(address, size, protection,
                                                                      flags, fd, offset);
}

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*start)(void*),
                   void* argument) {
  if (Fails("pthread_create")) return EAGAIN;
  return Real<int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*)>(
      "pthread_create")(thread, attributes, start, argument);
}

int fstat(int fd, struct stat* info) {
  if (fd > 2 && Fails("fstat")) return -1;
  return Real<int (*)(int, struct stat*)>("fstat")(fd, info);
}
}
