// Serves binaries that are tested from outside, with the fake driver on their library path: the
// environment says what the GPU is, and a file says what was left on it.
//   MEMREPLAY_FAKE_GPU_BYTES  how much memory it has
//   MEMREPLAY_FAKE_GPU_GPUS   how many there are
//   MEMREPLAY_FAKE_GPU_FAIL   ENTRY_POINT:NTH:CODE, as fake_driver_fail()
//   MEMREPLAY_FAKE_GPU_ALIAS  if set, fake_driver_alias_next_map()
//   MEMREPLAY_FAKE_GPU_LEFT   a file: "begun" once the driver is loaded, "allocates" once
//                             memory is requested, and when the process ends what is
//                             still held: what and how many, if any; then "end"
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "tests/cuda/fake_driver/control.h"

namespace {

class Environment {
 public:
  Environment() {
    if (const char* bytes = std::getenv("MEMREPLAY_FAKE_GPU_BYTES")) {
      fake_driver_reset(std::strtoull(bytes, nullptr, 10));
    }
    if (const char* gpus = std::getenv("MEMREPLAY_FAKE_GPU_GPUS")) {
      fake_driver_set_gpus(std::atoi(gpus));
    }
    if (const char* fail = std::getenv("MEMREPLAY_FAKE_GPU_FAIL")) {
      const std::string text = fail;
      const size_t first = text.find(':');
      const size_t second = text.find(':', first + 1);
      fake_driver_fail(text.substr(0, first).c_str(),
                       std::strtoull(text.c_str() + first + 1, nullptr, 10),
                       std::atoi(text.c_str() + second + 1));
    }
    if (std::getenv("MEMREPLAY_FAKE_GPU_ALIAS") != nullptr) fake_driver_alias_next_map();
    Write("begun\n");
    fake_driver_watch([](const char* entry_point) {
      if (std::string_view(entry_point) == "cuMemAlloc") Write("allocates\n");
    });
  }

  ~Environment() {
    FakeDriverHeld held = {};
    fake_driver_held(&held);
    std::FILE* file = OpenLeft();
    if (file == nullptr) return;
    const auto tell = [file](const char* what, uint64_t count) {
      if (count != 0) std::fprintf(file, "%s=%llu ", what, static_cast<unsigned long long>(count));
    };
    tell("segments", held.segments);
    tell("pages", held.pages);
    tell("mappings", held.mappings);
    tell("ranges", held.ranges);
    tell("pool_allocations", held.pool_allocations);
    tell("streams", held.streams);
    tell("events", held.events);
    tell("modules", held.modules);
    tell("host_allocations", held.host_allocations);
    tell("contexts", held.contexts);
    std::fprintf(file, "end\n");
    std::fclose(file);
  }

 private:
  static std::FILE* OpenLeft() {
    const char* path = std::getenv("MEMREPLAY_FAKE_GPU_LEFT");
    return path != nullptr ? std::fopen(path, "w") : nullptr;
  }
  static void Write(const char* text) {
    if (std::FILE* file = OpenLeft()) {
      std::fputs(text, file);
      std::fclose(file);
    }
  }
};

const Environment environment;

}  // namespace
