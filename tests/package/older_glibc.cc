// Uses what third_party/glibc supplies on the system where this is run, and prints "ok", or what is
// wrong. The test of the package runs it on a system whose glibc has none of it.
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <random>
#include <set>
#include <stdexcept>
#include <thread>

namespace {

int constructed = 0;
struct AtStart {
  AtStart() { ++constructed; }
} at_start;  // run by the program's own start code

int Fail(const char* what) {
  std::printf("wrong: %s\n", what);
  return 1;
}

bool Unwinds() {
  try {
    throw std::runtime_error("caught");
  } catch (const std::exception& error) {
    return true;
  }
  return false;
}

// Checks that a wait until a moment of the steady clock ends when it should, and no sooner.
bool Waits() {
  std::mutex mutex;
  std::condition_variable changed;
  std::unique_lock<std::mutex> lock(mutex);
  const auto start = std::chrono::steady_clock::now();
  const bool told =
      changed.wait_until(lock, start + std::chrono::milliseconds(60), [] { return false; });
  const auto waited = std::chrono::steady_clock::now() - start;
  return !told && waited >= std::chrono::milliseconds(60) && waited < std::chrono::seconds(20);
}

bool IsWoken() {
  std::mutex mutex;
  std::condition_variable changed;
  bool is_set = false;
  std::thread other([&] {
    const std::lock_guard<std::mutex> lock(mutex);
    is_set = true;
    changed.notify_one();
  });
  std::unique_lock<std::mutex> lock(mutex);
  const bool told = changed.wait_for(lock, std::chrono::seconds(20), [&] { return is_set; });
  lock.unlock();
  other.join();
  return told;
}

}  // namespace

int main(int argc, char** argv) {
  if (constructed != 1) return Fail("constructors");
  if (argc != 1 || argv[0] == nullptr) return Fail("arguments");
  if (!Unwinds()) return Fail("exceptions");
  if (!Waits()) return Fail("a wait with a limit");
  if (!IsWoken()) return Fail("a wait that is ended");
  struct stat here, there;
  if (stat("/", &here) != 0 || !S_ISDIR(here.st_mode)) return Fail("stat");
  if (stat("/nothing/here", &there) == 0) return Fail("stat of nothing");
  if (fstat(0, &there) != 0) return Fail("fstat");
  const bool linked = symlink("/nothing/here", "link.tmp") == 0;
  if (lstat("link.tmp", &there) != 0 || !S_ISLNK(there.st_mode)) return Fail("lstat");
  if (linked) unlink("link.tmp");
  std::random_device random;
  std::set<unsigned> numbers;
  for (int i = 0; i < 8; ++i) numbers.insert(random());
  if (numbers.size() < 7) return Fail("random numbers");
  std::puts("ok");
  return 0;
}
