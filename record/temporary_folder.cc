#include "record/temporary_folder.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "trace/bytes/output_file.h"
#include "trace/value/strings.h"

namespace memreplay {

absl::StatusOr<TemporaryFolder> TemporaryFolder::Make(const std::string& folder,
                                                      std::string_view name) {
  std::string path = StrCat(folder, "/", FileName(name, ".XXXXXX"));
  if (mkdtemp(path.data()) == nullptr) {
    return absl::InvalidArgumentError(StrCat(folder, ": cannot write: ", std::strerror(errno)));
  }
  std::error_code error;
  const std::filesystem::path absolute = std::filesystem::absolute(path, error);
  return TemporaryFolder(error ? path : absolute.lexically_normal().string());
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

}  // namespace memreplay
