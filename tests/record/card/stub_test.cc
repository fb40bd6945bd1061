#include <gtest/gtest.h>

#include <algorithm>

#include "record/card/stubs/elf_reader.h"
#include "tests/record/card/stub_library.h"

namespace memreplay::card {
namespace {

StubLibrary Runtime() {
  return {"libcudart.so.12",
          "libmemreplay_card.so",
          {12040, 90100, 22105, 0},
          {{"cudaRuntimeGetVersion", "libcudart.so.12"},
           {"cudaGetErrorName", "libcudart.so.12"},
           {"cudaNoSuchThing", "libcudart.so.12"},
           {"cudaGetNoSuchThing", "libcudart.so.12"},
           {"withoutVersion", ""}}};
}

TEST(Stub, ExportsLeadToTheCore) {
  LoadCore();
  void* stub = LoadStub(Runtime());
  auto* version =
      reinterpret_cast<int (*)(int*)>(dlvsym(stub, "cudaRuntimeGetVersion", "libcudart.so.12"));
  ASSERT_NE(version, nullptr) << dlerror();
  int answer = 0;
  EXPECT_EQ(version(&answer), 0);
  EXPECT_EQ(answer, 12040) << "the version that the stub was written for";
  EXPECT_EQ(dlvsym(stub, "cudaRuntimeGetVersion", "libcudart.so.13"), nullptr);
  auto* name = reinterpret_cast<const char* (*)(int)>(dlsym(stub, "cudaGetErrorName"));
  ASSERT_NE(name, nullptr);
  EXPECT_STREQ(name(2), "cudaErrorMemoryAllocation");
  EXPECT_NE(dlsym(stub, "withoutVersion"), nullptr);
}

TEST(Stub, UnknownFunctionsAreNotedAndQueriesFail) {
  void* core = LoadCore();
  void* stub = LoadStub(Runtime());
  auto* computes = reinterpret_cast<int (*)(int, int)>(dlsym(stub, "cudaNoSuchThing"));
  auto* asks = reinterpret_cast<int (*)(size_t*)>(dlsym(stub, "cudaGetNoSuchThing"));
  ASSERT_TRUE(computes != nullptr && asks != nullptr);
  EXPECT_EQ(computes(1, 2), 0);
  size_t size = 7;
  EXPECT_EQ(asks(&size), 801) << "not supported";
  EXPECT_EQ(size, 7U);
  auto* summary = reinterpret_cast<const char* (*)()>(dlsym(core, "memreplay_card_summary"));
  ASSERT_NE(summary, nullptr);
  const std::string text = summary();
  EXPECT_NE(text.find(R"("library": "libcudart.so.12", "name": "cudaGetNoSuchThing", "calls": 1)"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find(R"("name": "cudaNoSuchThing", "calls": 1)"), std::string::npos) << text;
}

TEST(Stub, ManySymbolsAndVersionsAreFound) {
  LoadCore();
  StubLibrary library{"libcupti.so.99", "libmemreplay_card.so", {}, {}};
  for (int i = 0; i < 1000; ++i) {
    library.symbols.push_back(
        {"cuptiThing" + std::to_string(i), i % 3 == 0 ? "" : "VERSION_" + std::to_string(i % 3)});
  }
  void* stub = LoadStub(library);
  for (const StubSymbol& symbol : library.symbols) {
    void* found = symbol.version.empty()
                      ? dlsym(stub, symbol.name.c_str())
                      : dlvsym(stub, symbol.name.c_str(), symbol.version.c_str());
    ASSERT_NE(found, nullptr) << symbol.name;
    EXPECT_EQ(reinterpret_cast<int (*)()>(found)(), 0) << symbol.name;
  }
}

TEST(ElfReader, ReadsWhatTheStubNeeds) {
  const std::string bytes = WriteStub(Runtime());
  SharedObject object;
  std::string error;
  ASSERT_TRUE(ReadSharedObject("stub", reinterpret_cast<const unsigned char*>(bytes.data()),
                               bytes.size(), &object, &error))
      << error;
  EXPECT_EQ(object.needed, std::vector<std::string>{"libmemreplay_card.so"});
  ASSERT_EQ(object.wanted.size(), 1U);
  EXPECT_EQ(object.wanted[0].name, kAttachSymbol);
}

TEST(ElfReader, ReadsVersionsOfTheCore) {
  SharedObject object;
  std::string error;
  const std::string path =
      std::string(std::getenv("TEST_SRCDIR")) + "/" + std::getenv("TEST_WORKSPACE") + "/" + kCore;
  ASSERT_TRUE(ReadSharedObject(path.c_str(), &object, &error)) << error;
  const auto malloc = std::find_if(object.wanted.begin(), object.wanted.end(),
                                   [](const WantedSymbol& s) { return s.name == "malloc"; });
  ASSERT_NE(malloc, object.wanted.end());
  EXPECT_EQ(malloc->library, "libc.so.6");
#if defined(__aarch64__)
  EXPECT_EQ(malloc->version, "GLIBC_2.17");
#else
  EXPECT_EQ(malloc->version, "GLIBC_2.2.5");
#endif
}

TEST(ElfReader, DamagedFilesAreRefusedOrReadAndNeverCrash) {
  const std::string whole = WriteStub(Runtime());
  SharedObject object;
  std::string error;
  const auto read = [&](const std::string& bytes) {
    object = {};
    return ReadSharedObject("damaged", reinterpret_cast<const unsigned char*>(bytes.data()),
                            bytes.size(), &object, &error);
  };
  EXPECT_FALSE(read(""));
  EXPECT_FALSE(
      read("no ELF file at all, but long enough to have a header of sixty-four bytes...."));
  for (size_t size = 0; size < whole.size(); size += 7) read(whole.substr(0, size));
  for (size_t at = 0; at < whole.size(); ++at) {
    std::string bytes = whole;
    bytes[at] = static_cast<char>(0xff);
    read(bytes);
  }
  EXPECT_FALSE(ReadSharedObject("/no/such/file.so", &object, &error));
  EXPECT_NE(error.find("No such file"), std::string::npos) << error;
}

}  // namespace
}  // namespace memreplay::card
