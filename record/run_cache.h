// What recorded runs of a program answered, kept for when the same is asked again.
#ifndef MEMREPLAY_RECORD_RUN_CACHE_H_
#define MEMREPLAY_RECORD_RUN_CACHE_H_

#include <filesystem>
#include <optional>
#include <string>

#include "proto/record.pb.h"
#include "record/run_program.h"

namespace memreplay {

// All of a run that is known before it runs: words, folder, interpreter, card, flags, what
// PyTorch and Python read of the environment.
std::string RunCacheKey(const RecordOptions& options);

// One file a key. Thread-safe, and safe among processes.
class RunCache {
 public:
  explicit RunCache(std::filesystem::path folder) : folder_(std::move(folder)) {}

  // Nullopt: not kept, or a source file of the program has changed since, by size or time. Data
  // that the program reads is not looked at.
  std::optional<proto::RecordReport> Find(const std::string& key) const;
  // A cache that cannot be written is none.
  void Keep(const std::string& key, const proto::RecordReport& report) const;

 private:
  std::filesystem::path FileOf(const std::string& key) const;

  std::filesystem::path folder_;
};

}  // namespace memreplay

#endif  // MEMREPLAY_RECORD_RUN_CACHE_H_
