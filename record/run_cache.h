// Keeps the reports of recorded runs, so that a script does not run twice for the same question.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "proto/record.pb.h"
#include "record/run_program.h"

namespace memreplay {

// Returns everything about a run that is known before it starts: command, folder, interpreter,
// card, flags, and the variables that PyTorch and Python read.
std::string RunCacheKey(const RecordOptions& options);

// A folder with one file per key. Thread-safe, and safe among processes.
class RunCache {
 public:
  explicit RunCache(std::filesystem::path folder) : folder_(std::move(folder)) {}

  // Returns nullopt if nothing is kept, or if a source file of the script has changed since, by
  // size or time. Data that the script reads is not checked.
  std::optional<proto::RecordReport> Find(const std::string& key) const;
  // Does nothing if the cache cannot be written.
  void Keep(const std::string& key, const proto::RecordReport& report) const;

 private:
  std::filesystem::path FileOf(const std::string& key) const;

  std::filesystem::path folder_;
};

}  // namespace memreplay
