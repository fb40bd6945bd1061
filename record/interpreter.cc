#include "record/interpreter.h"

#include <filesystem>
#include <system_error>

#include "record/gather.h"

namespace memreplay {
namespace {

namespace fs = std::filesystem;

bool Exists(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

// Returns whether the environment whose bin/ is `folder` has a package.
bool HasPackage(const fs::path& folder, const std::string& package) {
  for (const char* lib : {"lib", "lib64"}) {
    std::error_code ignored;
    for (const fs::path& path : PathsIn(folder.parent_path() / lib, &ignored)) {
      const bool is_python = path.filename().string().rfind("python3", 0) == 0;
      if (is_python && Exists(path / "site-packages" / package)) return true;
    }
  }
  return false;
}

}  // namespace

std::string ProgramFolder() {
  std::error_code ignored;
  return fs::read_symlink("/proc/self/exe", ignored).parent_path().string();
}

std::string PythonWith(const std::string& package) {
  const fs::path folder = ProgramFolder();
  if (package.empty() || HasPackage(folder, package)) {
    for (const char* name : {"python3", "python"}) {
      if (Exists(folder / name)) return (folder / name).string();
    }
  }
  return "python3";
}

}  // namespace memreplay
