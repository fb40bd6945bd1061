#include "record/gather.h"

#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <system_error>
#include <tuple>
#include <utility>
#include <vector>

#include "proto/numbers.h"
#include "trace/value/bounded.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMaxTextBytes = uint64_t{64} << 20;  // bytes

}  // namespace

std::vector<fs::path> PathsIn(const fs::path& folder, std::error_code* error) {
  std::vector<fs::path> paths;
  for (fs::directory_iterator it(folder, *error); !*error && it != fs::directory_iterator();
       it.increment(*error)) {
    paths.push_back(it->path());
  }
  return paths;
}

absl::StatusOr<std::string> ReadSmallFile(const std::string& path) {
  std::error_code error;
  const uint64_t size = fs::file_size(path, error);
  std::ifstream file(path, std::ios::binary);
  if (error || !file) return absl::InvalidArgumentError(StrCat(path, ": cannot read"));
  if (size > kMaxTextBytes) {
    return absl::ResourceExhaustedError(
        StrCat(path, ": expected at most ", kMaxTextBytes, " bytes, found ", size));
  }
  return std::string(std::istreambuf_iterator<char>(file), {});
}

RecordProgress ReadProgress(const std::string& folder) {
  RecordProgress sum;
  std::error_code ignored;
  for (const fs::path& path : PathsIn(folder, &ignored)) {
    if (path.filename().string().rfind("progress.", 0) != 0) continue;
    std::ifstream file(path, std::ios::binary);
    uint64_t values[8] = {};
    if (!file.read(reinterpret_cast<char*>(values), sizeof(values))) continue;
    sum.launches += values[0];
    sum.peak_used = std::max(sum.peak_used, values[4]);
  }
  return sum;
}

std::string WithTag(const std::string& out, const std::string& tag) {
  const fs::path path(out);
  return (path.parent_path() / StrCat(path.stem().string(), ".", tag, path.extension().string()))
      .string();
}

absl::StatusOr<proto::RecordedProcess> ParseRecordedProcess(std::string_view json) {
  proto::RecordedProcess process;
  google::protobuf::util::JsonParseOptions options;
  options.ignore_unknown_fields = true;
  const auto status =
      google::protobuf::util::JsonStringToMessage(std::string(json), &process, options);
  if (!status.ok()) {
    return absl::InvalidArgumentError(
        StrCat("expected the summary of a process: ", std::string(status.message())));
  }
  if (const absl::Status numbers = CheckNumbers(process); !numbers.ok()) {
    return absl::InvalidArgumentError(
        StrCat("the summary of a process: ", std::string(numbers.message())));
  }
  for (int i = 0; i < process.cards_size(); ++i) {
    proto::RecordedCard& card = *process.mutable_cards(i);
    process.set_ooms(BoundedSum(process.ooms(), card.ooms()));
    const int64_t used =
        i < process.card().cards_size() ? process.card().cards(i).peak_used() : int64_t{0};
    card.set_outside(std::max<int64_t>(used - card.peak_reserved(), 0));
    const auto& pinned = process.card().pinned();
    card.set_spare(card.capacity() - process.card().reserve() - card.peak_reserved() -
                   card.outside() - (i == 0 && pinned.from_gpu() != 0 ? pinned.peak() : 0));
  }
  if (process.rank() >= 0) process.set_name(StrCat("rank ", process.rank()));
  return process;
}

absl::Status GatherProcesses(const std::string& folder, const std::string& out,
                             proto::RecordReport* report) {
  struct Left {
    std::string pid;
    proto::RecordedProcess process;
  };
  std::vector<Left> all;
  std::error_code missing;
  for (const fs::path& path : PathsIn(folder, &missing)) {
    const std::string kind = path.extension().string();
    if (kind == ".problem") {
      const absl::StatusOr<std::string> why = ReadSmallFile(path.string());
      report->add_faults(
          StrCat("the recording of process ", path.stem().string(),
                 " could not be written: ", why.ok() && !why->empty() ? *why : "no space is left"));
    }
    if (kind != ".json") continue;
    const absl::StatusOr<std::string> text = ReadSmallFile(path.string());
    if (!text.ok()) return text.status();
    absl::StatusOr<proto::RecordedProcess> process = ParseRecordedProcess(*text);
    if (!process.ok()) return process.status();
    all.push_back({path.stem().string(), *std::move(process)});
  }
  if (missing) {
    report->add_faults(StrCat("the recording is lost: ", folder,
                              ", where it was kept, is gone: ", missing.message()));
  }
  const auto key = [](const Left& left) {
    return std::make_tuple(left.process.rank(), left.pid.size(), left.pid);
  };
  std::sort(all.begin(), all.end(),
            [&key](const Left& a, const Left& b) { return key(a) < key(b); });
  for (size_t i = 0; i < all.size(); ++i) {
    Left& left = all[i];
    const int rank = left.process.rank();
    // The previous one was moved into the report.
    const bool is_first = i == 0 || report->processes().rbegin()->rank() != rank;
    const bool alone_in_rank =
        rank >= 0 && is_first && (i + 1 == all.size() || all[i + 1].process.rank() != rank);
    const std::string to = all.size() == 1 ? out
                           : alone_in_rank ? WithTag(out, StrCat("rank", rank))
                                           : WithTag(out, StrCat("process", left.pid));
    std::error_code error;
    fs::rename(StrCat(folder, "/", left.pid, ".pickle"), to, error);
    if (error) {
      return absl::InvalidArgumentError(StrCat(to, ": cannot write: ", error.message()));
    }
    left.process.set_snapshot(to);
    *report->add_processes() = std::move(left.process);
  }
  return absl::OkStatus();
}

}  // namespace memreplay
