// What a command is asked about: files, schedule programs with parameters set from
// outside ("fsdp.txtpb --set prefetch=2"), or a training run that is written down for
// the purpose: "nanogpt train.py --batch_size=16".
#ifndef MEMREPLAY_CLI_INPUTS_H_
#define MEMREPLAY_CLI_INPUTS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "sim/recording/replay_settings.h"
#include "sim/study/study_trace.h"
#include "synth/models.h"
#include "trace/value/trace.h"

namespace memreplay {

// A trace, for the schedules of its devices to share. Errors: OpenTrace()'s.
absl::StatusOr<std::shared_ptr<const Trace>> OpenShared(const std::string& file);

// Errors: OpenTrace()'s too.
absl::StatusOr<OpenedFile> OpenWithSettings(const std::string& file,
                                            const SettingsRequest& request);

// What a command is about: files, or a model, and the parameters set for them.
class Inputs {
 public:
  // A command line whose first word is a model's name is about that model: its
  // keys (--KEY=VALUE, --KEY VALUE) are taken out. Of others --set NAME=VALUE is. Errors:
  // InvalidArgument: a key that does not exist but is believed in (with what to do instead), a
  // misspelt one, one without a value.
  static absl::StatusOr<Inputs> Split(absl::Span<const std::string> args);

  // What is left for the command's own flags.
  const std::vector<std::string>& args() const { return args_; }

  // `names`: of the command line left, what is no flag: files; of a model, its
  // config files, which its keys override. Errors: an unreadable config file,
  // settings that the model refuses.
  absl::Status SetNames(std::vector<std::string> names);

  const synth::ModelKind* model() const { return model_; }  // null: files
  // The model's name, or the first file.
  std::string name() const;
  // The key or parameter given as "?", to be found; empty: none.
  const std::string& unknown_key() const { return unknown_key_; }
  // The run, with `value` for the unknown key. For models and the first file, which
  // must be a program.
  absl::StatusOr<synth::TrainingRun> MakeRun(std::optional<int64_t> value = std::nullopt) const;

  // What there is to open; of a model one name, for Open().
  const std::vector<std::string>& files() const { return files_; }
  // What of them lies on disk, or config files of a model: no output may take its place.
  const std::vector<std::string>& paths() const { return paths_; }
  // As OpenWithSettings(); of a model, the release is the run's if none is given. A
  // file whose parameters are set must be a program.
  absl::StatusOr<OpenedFile> Open(const std::string& file, SettingsRequest request) const;

 private:
  const synth::ModelKind* model_ = nullptr;
  std::string unknown_key_;
  std::vector<std::string> args_;
  std::vector<std::string> files_;
  std::vector<std::string> paths_;
  std::vector<synth::Setting> settings_;
  std::map<std::string, int64_t> params_;
};

// Reads "NAME=16" into `params`. "NAME=?" goes into `unknown`, or is refused if that
// is null or has one already.
absl::Status ReadParameter(std::string_view text, std::map<std::string, int64_t>* params,
                           std::string* unknown);

}  // namespace memreplay

#endif  // MEMREPLAY_CLI_INPUTS_H_
