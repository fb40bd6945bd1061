#include "trace/bytes/byte_source.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <cstdio>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

namespace memreplay {
namespace {

std::string Gzip(const std::string& text) {
  z_stream z = {};
  EXPECT_EQ(deflateInit2(&z, 9, Z_DEFLATED, 15 + 16, 9, Z_DEFAULT_STRATEGY), Z_OK);
  std::string out(deflateBound(&z, text.size()) + 64, '\0');
  z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  z.avail_in = static_cast<uInt>(text.size());
  z.next_out = reinterpret_cast<Bytef*>(out.data());
  z.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&z, Z_FINISH), Z_STREAM_END);
  out.resize(z.total_out);
  deflateEnd(&z);
  return out;
}

std::string Zstd(const std::string& text) {
  std::string out(ZSTD_compressBound(text.size()), '\0');
  out.resize(ZSTD_compress(out.data(), out.size(), text.data(), text.size(), 9));
  return out;
}

// All of a source in steps of `step`, then its status.
absl::StatusOr<std::string> Drain(ByteSource& source, size_t step) {
  std::string out;
  for (;;) {
    const std::string_view unread = source.Peek(step);
    if (unread.empty()) break;
    const std::string_view taken = unread.substr(0, step);
    out.append(taken);
    source.Skip(taken.size());
    EXPECT_EQ(source.position(), out.size());
  }
  if (!source.status().ok()) return source.status();
  return out;
}

absl::StatusOr<std::string> Unpack(std::string bytes, const ByteSource::Limits& limits = {},
                                   size_t step = 100000) {
  auto source = ByteSource::FromBytes(std::move(bytes), limits);
  if (!source.ok()) return source.status();
  return Drain(**source, step);
}

std::string Message(const absl::Status& status) { return std::string(status.message()); }
bool Contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::string SomeText(size_t size) {
  std::string text;
  uint32_t x = 1;
  while (text.size() < size) {
    x = x * 1664525 + 1013904223;
    text += std::to_string(x >> 20) + (x % 7 == 0 ? "\n" : " ");
  }
  return text;
}

std::string WriteFile(const std::string& name, const std::string& bytes) {
  const std::string path = testing::TempDir() + "/" + name;
  std::ofstream(path, std::ios::binary) << bytes;
  return path;
}

TEST(ByteSource, TellsTheEncodingFromTheBytesNotTheName) {
  const std::string text = SomeText(1000);
  const std::pair<std::string, ByteSource::Encoding> cases[] = {
      {text, ByteSource::Encoding::kPlain},
      {Gzip(text), ByteSource::Encoding::kGzip},
      {Zstd(text), ByteSource::Encoding::kZstd},
  };
  for (const auto& [bytes, encoding] : cases) {
    for (const char* name : {"a.pickle", "b.json", "c.gz", "d.zst", "e"}) {
      const auto source = ByteSource::Open(WriteFile(name, bytes));
      ASSERT_TRUE(source.ok()) << source.status();
      EXPECT_EQ((*source)->encoding(), encoding);
      const absl::StatusOr<std::string> read = Drain(**source, 64);
      ASSERT_TRUE(read.ok()) << read.status();
      EXPECT_EQ(*read, text);
    }
  }
}

TEST(ByteSource, LargeTextsInAnyStep) {
  const std::string text = SomeText(1 << 20);
  for (const std::string& bytes : {text, Gzip(text), Zstd(text)}) {
    for (const size_t step : {1, 1000, 300000, 1 << 22}) {
      if (step == 1 && bytes.size() != text.size()) continue;
      const absl::StatusOr<std::string> read = Unpack(bytes, {}, step);
      ASSERT_TRUE(read.ok()) << read.status();
      EXPECT_TRUE(*read == text) << step;
    }
  }
}

TEST(ByteSource, ConcatenatedMembersAndPadding) {
  for (const auto pack : {Gzip, Zstd}) {
    const absl::StatusOr<std::string> read =
        Unpack(pack("one ") + pack("two") + std::string(600000, '\0'));
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(*read, "one two");
    EXPECT_FALSE(Unpack(pack("one ") + "rubbish").ok());
  }
}

TEST(ByteSource, TruncatedAndDamagedAreErrors) {
  const std::string text = SomeText(5000);
  const std::string gzip = Gzip(text), zstd = Zstd(text);
  for (const std::string& packed : {gzip, zstd}) {
    for (size_t length = 4; length < packed.size(); ++length) {
      const absl::StatusOr<std::string> read = Unpack(packed.substr(0, length));
      ASSERT_FALSE(read.ok()) << length;
      EXPECT_TRUE(Contains(Message(read.status()),
                           "truncated: the file ends at compressed byte " + std::to_string(length)))
          << read.status();
    }
    std::string damaged = packed;
    for (size_t i = packed.size() / 2; i < packed.size() / 2 + 40; ++i) damaged[i] ^= 0x55;
    const absl::StatusOr<std::string> read = Unpack(damaged);
    EXPECT_TRUE(!read.ok() || *read != text);
  }
  // The checksum of gzip is checked.
  std::string damaged = gzip;
  damaged[gzip.size() - 6] ^= 1;
  EXPECT_TRUE(Contains(Message(Unpack(damaged).status()), "gzip data is damaged"));
}

TEST(ByteSource, UnpackedSizeIsBounded) {
  const std::string bomb = Zstd(std::string(8 << 20, 'a'));
  ASSERT_LT(bomb.size(), 2000u);
  EXPECT_TRUE(Unpack(bomb).ok());  // small bombs do no harm
  const absl::Status by_ratio = Unpack(bomb, {.max_ratio = 100, .free_bytes = 1 << 20}).status();
  EXPECT_TRUE(Contains(Message(by_ratio), "decompression bomb")) << by_ratio;
  const absl::Status by_size = Unpack(bomb, {.max_bytes = 4 << 20}).status();
  EXPECT_TRUE(Contains(Message(by_size), "more than 4194304 bytes")) << by_size;
}

TEST(ByteSource, WhatCannotBeReadIsNamed) {
  const std::string folder = testing::TempDir();
  EXPECT_TRUE(absl::IsNotFound(ByteSource::Open(folder + "/not/there").status()));
  const absl::Status directory = ByteSource::Open(folder).status();
  EXPECT_TRUE(absl::IsInvalidArgument(directory));
  EXPECT_TRUE(Contains(Message(directory), "is a directory")) << directory;
  const absl::Status empty = ByteSource::Open(WriteFile("empty", "")).status();
  EXPECT_TRUE(Contains(Message(empty), "/empty: is empty")) << empty;
  if (geteuid() != 0) {
    const std::string secret = WriteFile("secret", "x");
    chmod(secret.c_str(), 0);
    EXPECT_TRUE(absl::IsPermissionDenied(ByteSource::Open(secret).status()));
  }
}

TEST(ByteSource, Pipes) {
  const std::string text = SomeText(700000);
  for (const std::string& bytes : {text, Gzip(text), Zstd(text)}) {
    const std::string path = testing::TempDir() + "/pipe";
    unlink(path.c_str());
    ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
    std::thread writer([&] { std::ofstream(path, std::ios::binary) << bytes; });
    const auto source = ByteSource::Open(path);
    ASSERT_TRUE(source.ok()) << source.status();
    EXPECT_FALSE((*source)->remaining().has_value());
    const absl::StatusOr<std::string> read = Drain(**source, 1000);
    writer.join();
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_TRUE(*read == text);
  }
}

// Returns the pages of files that this process has in memory.
size_t FilePages() {
  size_t size = 0, resident = 0, shared = 0;
  std::ifstream("/proc/self/statm") >> size >> resident >> shared;
  return shared;
}

TEST(ByteSource, DroppedBytesOfAFileLeaveMemoryAndCanBeReadAgain) {
  const std::string text = SomeText(8 << 20);
  const auto source = ByteSource::Open(WriteFile("dropped", text));
  ASSERT_TRUE(source.ok()) << source.status();
  const std::string_view bytes = (*source)->Peek(0);
  EXPECT_TRUE(bytes == text);
  const size_t before = FilePages();
  (*source)->Drop(bytes.substr(1, bytes.size() - 2));  // the first and the last page stay
  const auto pages = text.size() / static_cast<size_t>(sysconf(_SC_PAGESIZE));
  EXPECT_LT(FilePages() + pages / 2, before);
  EXPECT_TRUE(bytes == text);
}

TEST(ByteSource, DroppedBytesOfOtherSourcesStay) {
  const std::string text = SomeText(1 << 20);
  for (const std::string& encoded : {text, Gzip(text)}) {
    const auto source = ByteSource::FromBytes(encoded);
    ASSERT_TRUE(source.ok()) << source.status();
    const std::string_view bytes = (*source)->Peek(text.size());
    (*source)->Drop(bytes);
    EXPECT_TRUE(bytes == text);
  }
  const auto packed = ByteSource::Open(WriteFile("packed", Gzip(text)));
  ASSERT_TRUE(packed.ok()) << packed.status();
  const std::string_view bytes = (*packed)->Peek(text.size());
  (*packed)->Drop(bytes);
  EXPECT_TRUE(bytes == text);
}

TEST(ByteSource, Lines) {
  for (const std::string& bytes :
       {std::string("a\n\nbc\r\nlast"), Gzip("a\n\nbc\r\nlast"), Zstd("a\n\nbc\r\nlast\n")}) {
    auto source = ByteSource::FromBytes(bytes);
    ASSERT_TRUE(source.ok());
    std::vector<std::string> lines;
    std::string_view line;
    while ((*source)->ReadLine(&line)) lines.emplace_back(line);
    EXPECT_EQ(lines, (std::vector<std::string>{"a", "", "bc", "last"}));
    EXPECT_TRUE((*source)->status().ok());
  }
  auto source = ByteSource::FromBytes("ab\n" + std::string(100, 'x') + "\n");
  std::string_view line;
  EXPECT_TRUE((*source)->ReadLine(&line, 99));
  EXPECT_FALSE((*source)->ReadLine(&line, 99));
  EXPECT_TRUE(Contains(Message((*source)->status()), "byte 3: a line is longer than 99 bytes"));
}

}  // namespace
}  // namespace memreplay
