#include "record/temporary_folder.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "trace/value/strings.h"

namespace memreplay {

absl::StatusOr<TemporaryFolder> TemporaryFolder::Make(const std::string& prefix) {
  std::string path = StrCat(prefix, ".XXXXXX");
  if (mkdtemp(path.data()) == nullptr) {
    return absl::InvalidArgumentError(StrCat(prefix, ": cannot write: ", std::strerror(errno)));
  }
  std::error_code error;
  const std::filesystem::path absolute = std::filesystem::absolute(path, error);
  return TemporaryFolder(error ? path : absolute.string());
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

}  // namespace memreplay
