#include "record/run_cache.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <functional>
#include <string_view>
#include <system_error>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_format.h"
#include "proto/numbers.h"
#include "record/files.h"
#include "record/gather.h"
#include "trace/value/strings.h"

extern char** environ;

namespace memreplay {
namespace {

namespace fs = std::filesystem;

bool IsUnchanged(const proto::Source& source) {
  struct stat found;
  if (stat(source.path().c_str(), &found) != 0) return false;
  const int64_t modified = int64_t{found.st_mtim.tv_sec} * 1'000'000'000 + found.st_mtim.tv_nsec;
  return found.st_size == source.size() && static_cast<uint64_t>(modified) == source.modified();
}

}  // namespace

std::string RunCacheKey(const RecordOptions& options) {
  std::string key = StrCat("record ", kRecordFilesDigest, "\n");
  const auto add = [&key](std::string_view name, std::string_view value) {
    StrAppend(&key, name, "=", value.size(), ":", value, "\n");
  };
  for (const std::string& word : options.program) add("word", word);
  for (const auto& [name, value] : options.environment) add(name, value);
  std::error_code ignored;
  add("folder", fs::current_path(ignored).string());
  add("python", options.python);
  const auto count = [](const std::optional<int64_t>& number) { return number.value_or(-1); };
  add("card", options.card);
  for (const auto& [variable, value] : options.card_options) add(variable, value);
  for (const std::string& remedy : options.remedies) add("remedy", remedy);
  for (const proto::Edit& edit : options.edits) add("edit", edit.SerializeAsString());
  add("survey", options.survey ? "1" : "0");
  add("until", options.until);
  add("rank", StrCat(count(options.ranks), " ", count(options.rank)));
  add("run", StrCat(options.no_values ? 1 : 0, " ", options.no_notes ? 1 : 0, " ",
                    absl::StrFormat("%g", options.dynamic_fraction.value_or(-1)), " ",
                    count(options.unknown_limit), " ", options.fast_init ? 1 : 0, " ",
                    count(options.steps)));
  // These variables decide what PyTorch and Python do, and where commands are looked up.
  std::vector<std::string> inherited;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    for (const std::string_view prefix :
         {"PYTORCH_", "TORCH", "CUDA_", "PYTHON", "PATH=", "NCCL_"}) {
      if (text.substr(0, prefix.size()) == prefix) inherited.emplace_back(text);
    }
  }
  std::sort(inherited.begin(), inherited.end());
  for (const std::string& entry : inherited) add("inherited", entry);
  return key;
}

fs::path RunCache::FileOf(const std::string& key) const {
  return folder_ / absl::StrFormat("%016x", static_cast<uint64_t>(std::hash<std::string>()(key)));
}

std::optional<proto::RecordReport> RunCache::Find(const std::string& key) const {
  const absl::StatusOr<std::string> bytes = ReadSmallFile(FileOf(key).string());
  proto::CachedRun run;
  if (!bytes.ok() || !run.ParseFromString(*bytes) || run.key() != key) return std::nullopt;
  if (!CheckNumbers(run).ok()) return std::nullopt;
  for (const proto::RecordedProcess& process : run.report().processes()) {
    if (!absl::c_all_of(process.sources(), IsUnchanged)) {
      return std::nullopt;
    }
  }
  return run.report();
}

void RunCache::Keep(const std::string& key, const proto::RecordReport& report) const {
  const fs::path path = FileOf(key);
  std::error_code failed;
  fs::create_directories(folder_, failed);
  proto::CachedRun run;
  run.set_key(key);
  *run.mutable_report() = report;
  // A concurrent reader sees the old file or the new one.
  const fs::path written = StrCat(path.string(), ".", getpid(), ".tmp");
  std::ofstream file(written, std::ios::binary);
  const bool is_whole = run.SerializeToOstream(&file) && file.flush().good();
  file.close();
  if (is_whole) fs::rename(written, path, failed);
  if (!is_whole || failed) fs::remove(written, failed);
}

}  // namespace memreplay
