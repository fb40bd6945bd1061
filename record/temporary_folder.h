// A folder for the files of one run.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"

namespace memreplay {

// A folder that is removed with its content on destruction.
class TemporaryFolder {
 public:
  // Makes FOLDER/NAME.XXXXXX. Error: InvalidArgument if it cannot be made.
  static absl::StatusOr<TemporaryFolder> Make(const std::string& folder, std::string_view name);
  TemporaryFolder(TemporaryFolder&& other) noexcept : path_(std::exchange(other.path_, "")) {}
  TemporaryFolder& operator=(TemporaryFolder&&) = delete;
  ~TemporaryFolder();
  const std::string& path() const { return path_; }  // absolute
  void Keep() { path_.clear(); }                     // forgets it, so that it is not removed

 private:
  explicit TemporaryFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

}  // namespace memreplay
