#include "sim/settings/allocator_config.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace memreplay {
namespace {

const TorchProfile& Torch(const char* release) { return **FindTorchProfile(release); }

// Parses strings one after the other, as the environment's and later ones.
struct Parsed {
  AllocatorConfig config;
  absl::Status status;  // of the last
  std::vector<std::string> warnings;
};
Parsed Parse(const char* release, std::initializer_list<const char*> confs) {
  Parsed parsed;
  for (const char* conf : confs) {
    parsed.status = ParseAllocatorConf(conf, Torch(release), &parsed.config, &parsed.warnings);
  }
  return parsed;
}
bool Fails(const char* release, const char* conf) {
  return Parse(release, {conf}).status.code() == absl::StatusCode::kInvalidArgument;
}
std::array<uint64_t, 16> Divisions(const char* release, const char* conf) {
  const Parsed parsed = Parse(release, {conf});
  EXPECT_TRUE(parsed.status.ok()) << parsed.status;
  return parsed.config.roundup_power2_divisions;
}

TEST(AllocatorConf, EmptyStringIsTheDefault) {
  const Parsed parsed = Parse("2.11", {""});
  ASSERT_TRUE(parsed.status.ok());
  EXPECT_EQ(parsed.config.max_split_size, kUnlimited);
  EXPECT_EQ(parsed.config.max_non_split_rounding, MiB(20));
  EXPECT_EQ(parsed.config.large_segment_size, MiB(20));
  EXPECT_EQ(parsed.config.per_process_memory_fraction, 1.0);
  EXPECT_FALSE(parsed.config.expandable_segments);
}

TEST(AllocatorConf, AllKeysOfARelease) {
  const Parsed parsed =
      Parse("2.15", {"backend:native,max_split_size_mb:128,max_non_split_rounding_mb:200,"
                     "garbage_collection_threshold:0.8,roundup_power2_divisions:4,"
                     "expandable_segments:True,release_lock_on_cudamalloc:True,"
                     "pinned_use_cuda_host_register:True,pinned_num_register_threads:8,"
                     "pinned_use_background_threads:True,pinned_reserve_segment_size_mb:8,"
                     "pinned_free_catch_all:True,pinned_max_round_threshold_mb:1,"
                     "pinned_max_cached_size_mb:1,graph_capture_record_stream_reuse:True,"
                     "per_process_memory_fraction:0.9,large_segment_size_mb:64,"
                     "throw_on_cudamalloc_oom:True,expandable_segments_reserve:40G,"
                     "expandable_segments_reserve_by_class:[a:0.5,b:8G]"});
  ASSERT_TRUE(parsed.status.ok()) << parsed.status;
  const AllocatorConfig& config = parsed.config;
  EXPECT_EQ(config.max_split_size, MiB(128));
  EXPECT_EQ(config.max_non_split_rounding, MiB(200));
  EXPECT_EQ(config.garbage_collection_threshold, 0.8);
  EXPECT_EQ(config.roundup_power2_divisions[0], 4u);
  EXPECT_EQ(config.roundup_power2_divisions[15], 4u);
  EXPECT_TRUE(config.expandable_segments);
  EXPECT_TRUE(config.release_lock_on_cudamalloc);
  EXPECT_TRUE(config.graph_capture_record_stream_reuse);
  EXPECT_EQ(config.per_process_memory_fraction, 0.9);
  EXPECT_EQ(config.large_segment_size, MiB(64));
  EXPECT_TRUE(config.throw_on_cudamalloc_oom);
  EXPECT_EQ(config.expandable_segments_reserve.bytes, GiB(40));
  EXPECT_TRUE(parsed.warnings.empty());
}

TEST(AllocatorConf, KeysBeginWithARelease) {
  const struct {
    const char* conf;
    const char* last_without;
    const char* first_with;
  } kCases[] = {
      {"expandable_segments:True", "2.0", "2.1"},
      {"release_lock_on_cudamalloc:True", "2.1", "2.2"},
      {"release_lock_on_hipmalloc:True", "2.1", "2.2"},
      {"pinned_use_cuda_host_register:True", "2.1", "2.2"},
      {"pinned_use_hip_host_register:True", "2.1", "2.2"},
      {"pinned_num_register_threads:4", "2.1", "2.2"},
      {"pinned_use_background_threads:True", "2.5", "2.6"},
      {"max_non_split_rounding_mb:40", "2.5", "2.6"},
      {"graph_capture_record_stream_reuse:True", "2.8", "2.9"},
      {"per_process_memory_fraction:0.5", "2.9", "2.10"},
      {"pinned_reserve_segment_size_mb:4", "2.9", "2.10"},
      {"large_segment_size_mb:64", "2.10", "2.11"},
      {"throw_on_cudamalloc_oom:True", "2.11", "2.12"},
      {"pinned_free_catch_all:True", "2.11", "2.12"},
      {"pinned_max_round_threshold_mb:4", "2.12", "2.13"},
      {"pinned_max_cached_size_mb:4", "2.12", "2.13"},
      {"expandable_segments_reserve:0.5", "2.14", "2.15"},
      {"expandable_segments_reserve_by_class:[a:0.5]", "2.14", "2.15"},
  };
  for (const auto& c : kCases) {
    EXPECT_TRUE(Fails(c.last_without, c.conf)) << c.conf;
    EXPECT_FALSE(Fails(c.first_with, c.conf)) << c.conf;
  }
}

TEST(AllocatorConf, InvalidInEveryRelease) {
  for (const char* conf : {"foo:1,bar:2",
                           "garbage_collection_threshold:1.2",
                           "garbage_collection_threshold:0",
                           "garbage_collection_threshold:1",
                           "garbage_collection_threshold:nan",
                           "garbage_collection_threshold:1e-400",
                           "max_split_size_mb:2",
                           "max_split_size_mb:abc",
                           "max_split_size_mb:99999999999999999999",
                           "max_split_size_mb",
                           "max_split_size_mb:",
                           "expandable_segments:none",
                           "expandable_segments:true",
                           "release_lock_on_cudamalloc:none",
                           "pinned_num_register_threads:none",
                           "pinned_num_register_threads:1024",
                           "pinned_num_register_threads:0",
                           "roundup_power2_divisions:3",
                           "roundup_power2_divisions:0",
                           "roundup_power2_divisions:[3:4]",
                           "roundup_power2_divisions:[1:3]",
                           "roundup_power2_divisions:[1]",
                           "backend:foo",
                           ",",
                           ":",
                           "[",
                           ",max_split_size_mb:40",
                           "max_split_size_mb:40,,expandable_segments:True",
                           "max_split_size_mb=40",
                           "MAX_SPLIT_SIZE_MB:40"}) {
    for (const TorchProfile& profile : AllTorchProfiles()) {
      AllocatorConfig config;
      EXPECT_EQ(ParseAllocatorConf(conf, profile, &config).code(),
                absl::StatusCode::kInvalidArgument)
          << conf << " in " << profile.release;
    }
  }
}

TEST(AllocatorConf, ErrorsSayWhatWasExpectedAndFound) {
  EXPECT_EQ(
      Parse("2.6", {"max_split_size_mb:2"}).status.message(),
      "max_split_size_mb: expected more than 20, found \"2\"; this is an error in PyTorch 2.6");
  EXPECT_EQ(
      Parse("2.11", {"max_split_size_mb:2"}).status.message(),
      "max_split_size_mb: expected at least 20, found \"2\"; this is an error in PyTorch 2.11");
  EXPECT_EQ(Parse("2.6", {"large_segment_size_mb:64"}).status.message(),
            "settings: expected a key that this release knows, found \"large_segment_size_mb\"; "
            "this is an error in PyTorch 2.6");
}

TEST(AllocatorConf, SmallestSizes) {
  EXPECT_TRUE(Fails("2.9", "max_split_size_mb:20"));
  EXPECT_FALSE(Fails("2.9", "max_split_size_mb:21"));
  EXPECT_FALSE(Fails("2.10", "max_split_size_mb:20"));
  EXPECT_TRUE(Fails("2.6", "max_non_split_rounding_mb:20"));
  EXPECT_FALSE(Fails("2.10", "max_non_split_rounding_mb:20"));
  EXPECT_TRUE(Fails("2.11", "large_segment_size_mb:10"));
  EXPECT_FALSE(Fails("2.11", "large_segment_size_mb:11"));
  EXPECT_FALSE(Fails("2.11", "large_segment_size_mb:11,max_split_size_mb:11"));
  EXPECT_TRUE(Fails("2.11", "max_split_size_mb:40,large_segment_size_mb:64"));
}

TEST(AllocatorConf, NumbersAsTheLibraryReadsThem) {
  const Bytes most((~uint64_t{0} >> 20) << 20);
  EXPECT_EQ(Parse("2.6", {"max_split_size_mb:40abc"}).config.max_split_size, MiB(40));
  EXPECT_EQ(Parse("2.6", {"max_split_size_mb:-1"}).config.max_split_size, most);
  EXPECT_EQ(Parse("2.11", {"max_split_size_mb:-1"}).config.max_split_size, most);
  EXPECT_TRUE(Fails("2.6", "max_split_size_mb:2147483648"));
  EXPECT_EQ(Parse("2.11", {"max_split_size_mb:2147483648"}).config.max_split_size, MiB(2147483648));
  EXPECT_EQ(Parse("2.11", {"max_split_size_mb:17592186044416"}).config.max_split_size, most);
  EXPECT_EQ(
      Parse("2.6", {"garbage_collection_threshold:0x1p-2"}).config.garbage_collection_threshold,
      0.25);
}

TEST(AllocatorConf, EachParseForgetsSomeKeysAndKeepsOthers) {
  const char* first =
      "max_split_size_mb:100,roundup_power2_divisions:4,garbage_collection_threshold:0.5,"
      "expandable_segments:True,release_lock_on_cudamalloc:True,max_non_split_rounding_mb:100";
  for (const char* release : {"2.6", "2.10", "2.11"}) {
    const AllocatorConfig config = Parse(release, {first, ""}).config;
    EXPECT_EQ(config.max_split_size, kUnlimited);
    EXPECT_EQ(config.roundup_power2_divisions[3], 0u);
    EXPECT_EQ(config.garbage_collection_threshold, 0);
    EXPECT_TRUE(config.expandable_segments);
    EXPECT_TRUE(config.release_lock_on_cudamalloc);
    EXPECT_EQ(config.max_non_split_rounding, std::string(release) == "2.11" ? MiB(20) : MiB(100));
  }
  const AllocatorConfig large = Parse("2.11", {"large_segment_size_mb:64", ""}).config;
  EXPECT_EQ(large.large_segment_size, MiB(64));
  EXPECT_EQ(large.max_non_split_rounding, MiB(64));
}

TEST(AllocatorConf, KeysBeforeAnErrorStay) {
  const Parsed own = Parse("2.6", {"max_split_size_mb:40", "expandable_segments:True,foo:1"});
  EXPECT_FALSE(own.status.ok());
  EXPECT_EQ(own.config.max_split_size, kUnlimited);
  EXPECT_TRUE(own.config.expandable_segments);
  EXPECT_EQ(own.config.conf, "expandable_segments:True,foo:1");
  // CUDA's keys come after all of the shared ones.
  const Parsed shared = Parse("2.11", {"release_lock_on_cudamalloc:True,max_split_size_mb:2"});
  EXPECT_FALSE(shared.config.release_lock_on_cudamalloc);
  EXPECT_TRUE(Parse("2.6", {"release_lock_on_cudamalloc:True,max_split_size_mb:2"})
                  .config.release_lock_on_cudamalloc);
  EXPECT_EQ(Parse("2.11", {"backend:foo,max_split_size_mb:40"}).config.max_split_size, MiB(40));
}

TEST(AllocatorConf, SeparatorsAreEnforcedUpTo29Only) {
  for (const char* conf :
       {"max_split_size_mb:40:expandable_segments:True", "max_split_size_mb,40",
        "expandable_segments:True]", "max_split_size_mb[40]expandable_segments:True"}) {
    EXPECT_TRUE(Fails("2.9", conf)) << conf;
    EXPECT_FALSE(Fails("2.10", conf)) << conf;
  }
  EXPECT_TRUE(
      Parse("2.11", {"max_split_size_mb:40:expandable_segments:True"}).config.expandable_segments);
  EXPECT_FALSE(Fails("2.9", "max_split_size_mb:40,"));
  EXPECT_FALSE(Fails("2.9", "max_split _size_mb : 40"));
  EXPECT_TRUE(Fails("2.9", "max_split_size_mb\t:40"));
  EXPECT_FALSE(Fails("2.10", "max_split_size_mb\t:40"));
}

TEST(AllocatorConf, DivisionLists) {
  using Table = std::array<uint64_t, 16>;
  EXPECT_EQ(Divisions("2.6", "roundup_power2_divisions:[64:8,128:2,256:2,512:2,1024:1,>:1]"),
            (Table{8, 8, 8, 8, 8, 8, 8, 2, 2, 2, 1, 1, 1, 1, 1, 1}));
  EXPECT_EQ(Divisions("2.6", "roundup_power2_divisions:[4:8,16:2,>:1]"),
            (Table{8, 8, 8, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}));
  EXPECT_EQ(Divisions("2.10", "roundup_power2_divisions:[4:8,16:2,>:1]"),
            (Table{8, 8, 8, 0, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}));
  EXPECT_EQ(Divisions("2.10", "roundup_power2_divisions:[>:8]"),
            (Table{0, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8}));
  EXPECT_EQ(Divisions("2.10", "roundup_power2_divisions:[>:8,4:2]"),
            (Table{2, 2, 2, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8}));
  EXPECT_EQ(Divisions("2.6", "roundup_power2_divisions:[1048576:2]"),
            (Table{2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2}));
  EXPECT_EQ(Divisions("2.11", "roundup_power2_divisions:[1:2:4:8]"), (Table{2, 0, 8}));
  EXPECT_EQ(Divisions("2.6", "roundup_power2_divisions:[]"), Table{});
  EXPECT_EQ(Divisions("2.6", "roundup_power2_divisions:[1:2,"), (Table{2}));
  EXPECT_TRUE(Fails("2.3", "roundup_power2_divisions:[1:0]"));
  EXPECT_FALSE(Fails("2.4", "roundup_power2_divisions:[1:0]"));
  EXPECT_TRUE(Fails("2.10", "roundup_power2_divisions:[1:2,"));
}

TEST(AllocatorConf, UnclosedListIsUndefinedInOldReleases) {
  const auto says_undefined = [](const char* release) {
    return Parse(release, {"roundup_power2_divisions:[1:2"}).status.message().find("undefined") !=
           std::string::npos;
  };
  EXPECT_TRUE(says_undefined("2.6"));
  EXPECT_FALSE(says_undefined("2.7"));
  EXPECT_TRUE(Fails("2.7", "roundup_power2_divisions:[1:2"));
}

TEST(AllocatorConf, BackendIsChosenByTheFirstString) {
  const Parsed parsed = Parse(
      "2.11", {"max_split_size_mb:20,backend:cudaMallocAsync,release_lock_on_cudamalloc:none"});
  EXPECT_FALSE(parsed.status.ok());
  EXPECT_EQ(parsed.config.backend, Backend::kCudaMallocAsync);
  ASSERT_EQ(parsed.warnings.size(), 1u);
  EXPECT_EQ(parsed.warnings[0],
            "backend:cudaMallocAsync ignores max_split_size_mb, release_lock_on_cudamalloc");
  const Parsed later = Parse("2.11", {"", "backend:cudaMallocAsync"});
  EXPECT_FALSE(later.status.ok());
  EXPECT_EQ(later.config.backend, Backend::kNative);
  EXPECT_TRUE(Parse("2.6", {"", "backend:native,max_split_size_mb:40"}).status.ok());
}

TEST(AllocatorConf, ReserveOfExpandableSegments) {
  const struct {
    const char* value;
    double share;
    Bytes bytes;
  } kCases[] = {
      {"0.5", 0.5, Bytes(0)},    {"40G", 0, GiB(40)},        {"0.125g", 0, MiB(128)},
      {"+0.25", 0.25, Bytes(0)}, {"5", 5, Bytes(0)},         {"0.25x", 0.75, Bytes(0)},
      {"40GB", 0.75, Bytes(0)},  {"128M", 0.75, Bytes(0)},   {"-1", 0.75, Bytes(0)},
      {"0", 0.75, Bytes(0)},     {"inf", 0.75, Bytes(0)},    {"nan", 0.75, Bytes(0)},
      {"G", 0.75, Bytes(0)},     {"0x1p-2", 0.75, Bytes(0)}, {"1e400", 0.75, Bytes(0)},
  };
  for (const auto& c : kCases) {
    Parsed parsed = Parse("2.15", {"expandable_segments_reserve:0.75"});
    const std::string conf = std::string("expandable_segments_reserve:") + c.value;
    EXPECT_TRUE(ParseAllocatorConf(conf, Torch("2.15"), &parsed.config, &parsed.warnings).ok());
    EXPECT_EQ(parsed.config.expandable_segments_reserve.share, c.share) << c.value;
    EXPECT_EQ(parsed.config.expandable_segments_reserve.bytes, c.bytes) << c.value;
    EXPECT_EQ(parsed.warnings.size(), c.share == 0.75 ? 1u : 0u) << c.value;
  }
}

}  // namespace
}  // namespace memreplay
