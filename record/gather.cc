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

#include "absl/algorithm/container.h"
#include "proto/numbers.h"
#include "trace/bytes/output_file.h"
#include "trace/bytes/pickle_writer.h"
#include "trace/value/bounded.h"
#include "trace/value/status_macros.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMaxTextBytes = uint64_t{64} << 20;  // bytes

// The last key that memreplay adds to a snapshot, which PyTorch's own function does not write.
constexpr char kSnapshotMark[] = "torch_version";

// Adds the key "memreplay_ended" to the dict of a pickle, which lies on the stack where it ends. If
// that cannot be written (a full disk), the file stays as it was.
void AddEnd(const std::string& path, std::string_view ended) {
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  if (ended.empty() || !file.seekg(-1, std::ios::end) || file.get() != '.') return;
  const auto size = file.tellg();
  std::string more;
  PickleWriter pickle(more);
  pickle.BeginDict();
  more.clear();  // the dict is there
  pickle.Item();
  pickle.Text("memreplay_ended");
  pickle.Text(ended);
  pickle.End();
  pickle.Stop();
  file.seekp(0, std::ios::end);
  if (file << more.substr(1) << std::flush && file.seekp(size - std::streamoff{1}) &&
      file.put(more[0])) {
    return;
  }
  file.close();
  std::error_code ignored;
  fs::resize_file(path, static_cast<uintmax_t>(size), ignored);
}

// Returns whether a snapshot may be written to `path` although the user did not name it.
bool IsFree(const std::string& path, fs::file_time_type began) {
  std::error_code missing;
  const fs::file_time_type written = fs::last_write_time(path, missing);
  return missing || (written < began && CheckReplacesOwn(path, kSnapshotMark).ok());
}

// Returns the files of a run, which are paths_of(the name that was given); where that is a default,
// of the first for which all of them are free.
std::vector<std::string> PathsOf(
    const SnapshotPlace& place,
    const std::function<std::vector<std::string>(const std::string&)>& paths_of) {
  std::vector<std::string> paths = paths_of(place.out);
  const auto is_free = [&place](const std::string& path) { return IsFree(path, place.began); };
  for (int n = 2; place.is_default && !absl::c_all_of(paths, is_free); ++n) {
    paths = paths_of(WithTag(place.out, StrCat(n)));
  }
  return paths;
}

}  // namespace

const proto::Wishes::Files& LeftFiles() {
  static const auto* const files = [] {
    auto* names = new proto::Wishes::Files();
    names->set_recording(".recording");
    names->set_snapshot(".pickle");
    names->set_part(".json.part");
    names->set_summary(".json");
    names->set_problem(".problem");
    names->set_unusable("unusable");
    names->set_progress("progress");
    return names;
  }();
  return *files;
}

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
    if (path.stem() != LeftFiles().progress()) continue;
    std::ifstream file(path, std::ios::binary);
    uint64_t values[2];  // Device::Progress of record/card/device/device.h
    if (!file.read(reinterpret_cast<char*>(values), sizeof(values))) continue;
    sum.launches += values[0];
    sum.peak_used = std::max(sum.peak_used, values[1]);
  }
  return sum;
}

std::string WithTag(const std::string& out, const std::string& tag) {
  std::error_code ignored;
  if (IsStandardOutput(out) || fs::is_character_file(out, ignored)) return out;
  const fs::path path(out);
  return (path.parent_path() /
          FileName(path.stem().string(), StrCat(".", tag, path.extension().string())))
      .string();
}

absl::Status CheckPlace(SnapshotPlace* place) {
  std::error_code ignored;
  const std::vector<std::string> paths = PathsOf(*place, [&](const std::string& out) {
    std::vector<std::string> found = {out};
    for (int rank = 0;; ++rank) {
      const std::string path = WithTag(out, StrCat("rank", rank));
      if (path == out || fs::symlink_status(path, ignored).type() == fs::file_type::not_found) {
        return found;
      }
      found.push_back(path);
    }
  });
  place->out = paths[0];
  RETURN_IF_ERROR(CheckOutputs(paths, place->inputs));
  if (IsStandardOutput(place->out)) return absl::OkStatus();
  return CheckOutputs({"-", place->out}, {});  // what the script and this command print is there
}

absl::StatusOr<proto::RecordedProcess> ParseRecordedProcess(std::string_view json) {
  google::protobuf::util::JsonParseOptions options;
  proto::ProcessSummary summary;
  auto status = google::protobuf::util::JsonStringToMessage(std::string(json), &summary, options);
  std::string unknown;
  if (!status.ok()) {  // perhaps for a field that only another version has
    unknown = StrCat(": ", std::string(status.message()));
    options.ignore_unknown_fields = true;
    summary.Clear();
    status = google::protobuf::util::JsonStringToMessage(std::string(json), &summary, options);
  }
  constexpr int kVersion = proto::Wishes::current;
  if (!status.ok()) {
    return absl::InvalidArgumentError(StrCat("expected the summary of a process", unknown));
  }
  if (!unknown.empty() || summary.version() != kVersion) {
    return absl::InvalidArgumentError(
        StrCat("expected the summary of a process of version ", kVersion, ", found version ",
               summary.version(), unknown, "; the older is ",
               summary.version() < kVersion ? "what recorded it" : "this memreplay"));
  }
  proto::RecordedProcess& process = *summary.mutable_process();
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
  return std::move(process);
}

absl::StatusOr<std::vector<std::string>> GatherProcesses(const std::string& folder,
                                                         SnapshotPlace place, const Judge& judge,
                                                         proto::RecordReport* report) {
  struct Left {
    std::string pid;
    proto::RecordedProcess process;
  };
  std::vector<Left> all;
  std::error_code missing;
  for (const fs::path& path : PathsIn(folder, &missing)) {
    const std::string kind = path.extension().string();
    if (kind == LeftFiles().problem()) {
      const absl::StatusOr<std::string> why = ReadSmallFile(path.string());
      report->add_faults(
          StrCat("the recording of process ", path.stem().string(),
                 " could not be written: ", why.ok() && !why->empty() ? *why : "no space is left"));
    }
    if (kind != LeftFiles().summary()) continue;
    ASSIGN_OR_RETURN(const std::string text, ReadSmallFile(path.string()));
    ASSIGN_OR_RETURN(proto::RecordedProcess process, ParseRecordedProcess(text));
    for (const proto::Source& source : process.sources()) {
      place.inputs.push_back(source.path());
    }
    all.push_back({path.stem().string(), std::move(process)});
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
  const std::vector<std::string> paths = PathsOf(place, [&all](const std::string& out) {
    std::vector<std::string> found;
    for (size_t i = 0; i < all.size(); ++i) {
      const int rank = all[i].process.rank();
      const bool is_first = i == 0 || all[i - 1].process.rank() != rank;
      const bool alone_in_rank =
          rank >= 0 && is_first && (i + 1 == all.size() || all[i + 1].process.rank() != rank);
      const std::string tag = alone_in_rank ? StrCat("rank", rank) : StrCat("process", all[i].pid);
      found.push_back(all.size() == 1 ? out : WithTag(out, tag));
    }
    return found;
  });
  RETURN_IF_ERROR(CheckOutputs(paths, place.inputs));
  std::vector<std::string> readable;
  const int first = report->processes_size();
  for (size_t i = 0; i < all.size(); ++i) {
    all[i].process.set_snapshot(paths[i]);
    *report->add_processes() = std::move(all[i].process);
  }
  if (judge != nullptr) judge(report);
  for (size_t i = 0; i < all.size(); ++i) {
    ASSIGN_OR_RETURN(OutputFile file, OutputFile::Open(paths[i], place.inputs));
    const std::string made = StrCat(folder, "/", all[i].pid, LeftFiles().snapshot());
    AddEnd(made, report->processes(first + static_cast<int>(i)).ended());
    RETURN_IF_ERROR(file.CloseWith(made));
    std::error_code ignored;
    readable.push_back(fs::exists(made, ignored) ? made : paths[i]);
  }
  return readable;
}

}  // namespace memreplay
