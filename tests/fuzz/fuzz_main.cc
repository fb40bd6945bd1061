// Connects libFuzzer with the targets, one of which MEMREPLAY_FUZZ names. FUZZ_TARGETS is the
// function that lists them, and the build names it.
#include <google/protobuf/stubs/logging.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "tests/fuzz/targets.h"

#ifndef FUZZ_TARGETS
#define FUZZ_TARGETS ReaderTargets
#endif

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const memreplay::fuzz::Target* const target = [] {
    const char* const name = std::getenv("MEMREPLAY_FUZZ");
    const memreplay::fuzz::Target* const found =
        memreplay::fuzz::FindTarget(memreplay::fuzz::FUZZ_TARGETS(), name == nullptr ? "" : name);
    if (found == nullptr) {
      std::fprintf(stderr, "MEMREPLAY_FUZZ: expected the name of a target\n");
      std::exit(2);
    }
    google::protobuf::SetLogHandler(nullptr);  // as main() does
    return found;
  }();
  target->run(std::string_view(reinterpret_cast<const char*>(data), size));
  return 0;
}
