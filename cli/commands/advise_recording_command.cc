// memreplay advise FILE...
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_join.h"
#include "cli/commands/command.h"
#include "cli/commands/file_command.h"
#include "cli/commands/help.h"
#include "cli/flags/flags.h"
#include "cli/flags/inputs.h"
#include "cli/flags/replay_flags.h"
#include "cli/io/output.h"
#include "report/ask/advise_recording.h"
#include "report/ask/file_report.h"
#include "sim/study/study.h"
#include "trace/bytes/json_scanner.h"
#include "trace/value/status_macros.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

struct AdviseFileFlags {
  FileFlags file;
  std::string card;
  AdviseKey key;
};

// A recording of the script with a value of the argument: SMALL=8.
struct ValuedFile {
  std::string file;
  int64_t value = 0;
};

absl::StatusOr<std::vector<ValuedFile>> ValuedFiles(const std::vector<std::string>& names,
                                                    const AdviseKey& key) {
  std::vector<ValuedFile> files;
  for (const std::string& name : names) {
    const size_t equals = name.rfind('=');
    const std::optional<int64_t> value =
        equals == std::string::npos ? std::nullopt : ParseInt64(name.substr(equals + 1));
    if (equals == 0 || !value.has_value()) {
      return InvalidArgument(key.name, ": expected each recording with its value, as in ", name,
                             "=8, found '", name, "'");
    }
    files.push_back({name.substr(0, equals), *value});
  }
  // The answer describes the first one.
  std::stable_partition(files.begin(), files.end(),
                        [&](const ValuedFile& file) { return file.value == key.value; });
  return files;
}

// Returns the report about recordings of one script with several values of an argument.
absl::StatusOr<proto::Report> AdviseValues(const std::vector<ValuedFile>& files,
                                           const AdviseFileFlags& options, const std::string& card,
                                           const std::string& names) {
  Progress progress(StrCat("reading ", files[0].file));
  std::vector<OpenedFile> opened;
  for (const ValuedFile& file : files) {
    ASSIGN_OR_RETURN(OpenedFile one, OpenFile(file.file, options.file.settings));
    opened.push_back(std::move(one));
  }
  return AskDevices("advise", names, opened[0], options.file.device,
                    [&](const Study& study) -> absl::StatusOr<proto::DeviceReport> {
                      std::vector<RecordedValue> recordings;
                      for (size_t i = 0; i < files.size(); ++i) {
                        const auto& devices = opened[i].devices;
                        const auto same = absl::c_find_if(devices, [&](const auto& other) {
                          return other->device() == study.device();
                        });
                        if (same == devices.end()) {
                          return absl::NotFoundError(
                              StrCat(files[i].file, ": has no data for device ", study.device()));
                        }
                        recordings.push_back({files[i].file, files[i].value, &(*same)->schedule()});
                      }
                      ASSIGN_OR_RETURN(Scaling scaling, Scaling::Find(std::move(recordings)));
                      const ScaledQuestion scaled = {std::move(scaling), options.key.name,
                                                     options.key.value, options.key.finds_largest};
                      progress.SetActivity(StrCat("trying changes of ", files[0].file));
                      return AskAdvice(study, card, &progress, &scaled);
                    });
}

}  // namespace

absl::StatusOr<int> RunAdviseRecording(const CommandLine& line) {
  AdviseFileFlags options;
  FlagSet flags("advise [recording] FILE... [flags]", kAdviseRecordingHelp);
  AddCapacityFlag(&flags, &options.file.settings,
                  "the memory that it should fit into: that of a GPU, such as rtx-4090, or a size\n"
                  "that is available to PyTorch",
                  "card", &options.card);
  AddTorchFlag(&options.file.settings.torch, &flags);
  AddDeviceFlag(&options.file.device, &flags);
  AddFileFlags(&options.file, &flags);
  AddAdviseKey(&flags, &options.key);
  ASSIGN_OR_RETURN(const std::optional<Inputs> inputs,
                   ParseInputs(line, "advise", &flags, /*may_be_none=*/true));
  if (!inputs.has_value()) return kExitAnswered;
  if (inputs->files().empty()) {
    return absl::InvalidArgumentError(
        "advise: no FILE given; see memreplay advise recording --help");
  }
  const bool is_named = !options.file.settings.capacity_note.empty();  // not a size
  const std::string card = is_named ? options.card : "";
  if (!options.key.name.empty()) {
    const absl::StatusOr<std::vector<ValuedFile>> files = ValuedFiles(inputs->files(), options.key);
    if (!files.ok()) return Within("advise", files.status());
    return ReportEach("advise", {absl::StrJoin(inputs->files(), " ")}, options.file.form(),
                      options.file.jobs, [&](const std::string& names, size_t) {
                        return AdviseValues(*files, options, card, names);
                      });
  }
  return AnswerFiles("advise", *inputs, options.file, [&](const Study& study, const FileRun& run) {
    run.progress.SetActivity(StrCat("trying changes of ", run.file));
    return AskAdvice(study, card, &run.progress);
  });
}

}  // namespace memreplay
