// What lets a program that is linked on Debian 12 (glibc 2.36) start with glibc 2.28, the
// oldest that PyTorch's own wheels take (manylinux_2_28). A symbol of the linker's glibc that is
// younger than that is either defined here, or replaced by its older version. These
// definitions are hidden: shared libraries, libcuda.so.1 among them, keep glibc's.
//
// tests/package/glibc.py names the symbols that are missing here.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>

// Each architecture has the version that all symbols of its first glibc carry, the number by which
// that glibc knows the kernel's structure stat, and a jump to another symbol.
#if defined(__x86_64__)
#define FIRST "GLIBC_2.2.5"
enum { kStatVersion = 1 };
#define JUMP_TO(name) "jmp *" name "@GOTPCREL(%rip)\n"
#elif defined(__aarch64__)
#define FIRST "GLIBC_2.17"
enum { kStatVersion = 0 };
#define JUMP_TO(name) \
  "adrp x16, :got:" name "\n" "ldr x16, [x16, :got_lo12:" name "]\n" "br x16\n"
#else
#error "Neither x86-64 nor aarch64."
#endif

// Of the running glibc.
typedef int Main(int, char**, char**);
extern int older_start(Main*, int, char**, int (*init)(int, char**, char**), void (*fini)(void),
                       void (*rtld_fini)(void), void*);
__asm__(".symver older_start, __libc_start_main@" FIRST);
extern int older_xstat(int version, const char* path, struct stat* to);
extern int older_lxstat(int version, const char* path, struct stat* to);
extern int older_fxstat(int version, int file, struct stat* to);
__asm__(".symver older_xstat, __xstat@" FIRST);
__asm__(".symver older_lxstat, __lxstat@" FIRST);
__asm__(".symver older_fxstat, __fxstat@" FIRST);

#pragma GCC visibility push(hidden)

// The calls that glibc 2.29 (libm), 2.32 and 2.34 (libpthread and libdl became part of libc)
// gave a new version without a new meaning: a jump to the version of before.
#define SAME_AS(name)                                             \
  __asm__(".pushsection .text." #name                             \
          ",\"ax\"\n"                                             \
          ".globl " #name                                         \
          "\n"                                                    \
          ".hidden " #name                                        \
          "\n"                                                    \
          ".type " #name                                          \
          ", %function\n"                                         \
          ".symver older_" #name ", " #name "@" FIRST "\n" #name  \
          ":\n" JUMP_TO("older_" #name)                           \
          ".size " #name ", .-" #name                             \
          "\n"                                                    \
          ".popsection\n");

SAME_AS(dlclose)
SAME_AS(dlerror)
SAME_AS(dlopen)
SAME_AS(dlsym)
SAME_AS(exp)
SAME_AS(log)
SAME_AS(log2)
SAME_AS(pow)
SAME_AS(pthread_create)
SAME_AS(pthread_detach)
SAME_AS(pthread_getspecific)
SAME_AS(pthread_join)
SAME_AS(pthread_key_create)
SAME_AS(__pthread_key_create)
SAME_AS(pthread_key_delete)
SAME_AS(pthread_once)
SAME_AS(pthread_rwlock_rdlock)
SAME_AS(pthread_rwlock_unlock)
SAME_AS(pthread_rwlock_wrlock)
SAME_AS(pthread_setspecific)
SAME_AS(pthread_sigmask)

// Before 2.34 a program brought the code that runs its constructors with it.
extern void (*__init_array_start[])(int, char**, char**);
extern void (*__init_array_end[])(int, char**, char**);
extern void _init(void);

static int RunConstructors(int argc, char** argv, char** environment) {
  _init();
  const ptrdiff_t count = __init_array_end - __init_array_start;
  for (ptrdiff_t i = 0; i < count; ++i) __init_array_start[i](argc, argv, environment);
  return 0;
}

int __libc_start_main(Main* main, int argc, char** argv, int (*init)(int, char**, char**),
                      void (*fini)(void), void (*rtld_fini)(void), void* stack_end) {
  (void)init;
  return older_start(main, argc, argv, RunConstructors, fini, rtld_fini, stack_end);
}

// 2.33: before, stat() was a macro over these.
int stat(const char* path, struct stat* to) { return older_xstat(kStatVersion, path, to); }
int lstat(const char* path, struct stat* to) { return older_lxstat(kStatVersion, path, to); }
int fstat(int file, struct stat* to) { return older_fxstat(kStatVersion, file, to); }
int stat64(const char* path, struct stat64* to) { return stat(path, (struct stat*)to); }
int lstat64(const char* path, struct stat64* to) { return lstat(path, (struct stat*)to); }
int fstat64(int file, struct stat64* to) { return fstat(file, (struct stat*)to); }

// 2.36.
uint32_t arc4random(void) {
  uint32_t value;
  ssize_t got;
  do {
    got = getrandom(&value, sizeof value, 0);
  } while (got < 0 && errno == EINTR);
  if (got != (ssize_t)sizeof value) abort();
  return value;
}

// 2.32: "there may be other threads" is always true enough.
char __libc_single_threaded = 0;

// 2.30: waits until a moment of a given clock. Before, only the clock of the wall could be given.
int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                           const struct timespec* until) {
  if (clock == CLOCK_REALTIME) return pthread_cond_timedwait(condition, mutex, until);
  struct timespec now, wall;
  clock_gettime(clock, &now);
  clock_gettime(CLOCK_REALTIME, &wall);
  const int64_t second = 1000000000;
  int64_t nanoseconds = wall.tv_nsec + (until->tv_nsec - now.tv_nsec);
  int64_t seconds = wall.tv_sec + (until->tv_sec - now.tv_sec);
  seconds += nanoseconds / second;
  nanoseconds %= second;
  if (nanoseconds < 0) {
    nanoseconds += second;
    --seconds;
  }
  const struct timespec then = {.tv_sec = seconds, .tv_nsec = nanoseconds};
  return pthread_cond_timedwait(condition, mutex, &then);
}

// 2.35: where the unwinder of exceptions finds the tables of the code at an address.
struct Search {
  uintptr_t address;
  struct dl_find_object* found;
};

static int LookInto(struct dl_phdr_info* object, size_t size, void* data) {
  (void)size;
  struct Search* search = data;
  const ElfW(Phdr)* tables = NULL;
  int is_here = 0;
  uintptr_t start = UINTPTR_MAX, end = 0;
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)* part = &object->dlpi_phdr[i];
    const uintptr_t begin = object->dlpi_addr + part->p_vaddr;
    if (part->p_type == PT_GNU_EH_FRAME) tables = part;
    if (part->p_type != PT_LOAD) continue;
    if (begin < start) start = begin;
    if (begin + part->p_memsz > end) end = begin + part->p_memsz;
    if (search->address >= begin && search->address - begin < part->p_memsz) is_here = 1;
  }
  if (!is_here) return 0;
  if (tables == NULL) return -1;
  memset(search->found, 0, sizeof *search->found);
  search->found->dlfo_map_start = (void*)start;
  search->found->dlfo_map_end = (void*)end;
  search->found->dlfo_eh_frame = (void*)(object->dlpi_addr + tables->p_vaddr);
  return 1;
}

int _dl_find_object(void* address, struct dl_find_object* found) {
  struct Search search = {(uintptr_t)address, found};
  return dl_iterate_phdr(LookInto, &search) == 1 ? 0 : -1;
}

#pragma GCC visibility pop
