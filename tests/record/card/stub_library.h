// Writes and loads a stub library in a test.
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <string>

#include "record/card/stubs/stub.h"

namespace memreplay::card {

inline constexpr char kCore[] = "record/card/libmemreplay_card.so";

// Loads the core, which is among this test's run files.
inline void* LoadCore() {
  void* core = dlopen(
      (std::string(std::getenv("TEST_SRCDIR")) + "/" + std::getenv("TEST_WORKSPACE") + "/" + kCore)
          .c_str(),
      RTLD_NOW | RTLD_GLOBAL);
  EXPECT_NE(core, nullptr) << dlerror();
  return core;
}

// Writes a file only once: one that is loaded must not be written again.
inline void* LoadStub(const StubLibrary& library) {
  const std::string path = testing::TempDir() + "/" + library.soname;
  if (void* loaded = dlopen(path.c_str(), RTLD_NOW | RTLD_NOLOAD)) return loaded;
  std::ofstream(path, std::ios::binary) << WriteStub(library);
  void* stub = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
  EXPECT_NE(stub, nullptr) << dlerror();
  return stub;
}

}  // namespace memreplay::card
