// The inputs of a command: files, schedules with parameters ("fsdp.txtpb --set prefetch=2"), or a
// training run that is written for the purpose ("nanogpt train.py --batch_size=16").
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cli/flags/flags.h"
#include "sim/recording/replay_settings.h"
#include "sim/study/study.h"
#include "synth/models.h"

namespace memreplay {

// The files or the model that a command is about, and the parameters set for them.
class Inputs {
 public:
  // Reads a command line. If its first word that is no flag is the name of a model, the model's
  // keys become flags, and other words are its config files, which the keys override; else --set
  // NAME=VALUE is a flag. Where help is requested, reads nothing else. Errors: those of
  // FlagSet::Parse(), a key that people expect but that does not exist (with what to do instead),
  // an unreadable config file.
  static absl::StatusOr<Inputs> Parse(absl::Span<const std::string> args, FlagSet* flags);

  const synth::ModelKind* model() const { return model_; }  // null: files
  // Returns the model's name, or the first file.
  std::string name() const;
  // Returns the key or parameter given as "?", whose value is searched for; empty if there is none.
  const std::string& unknown_key() const { return unknown_key_; }
  // Returns the model's key of that name; 0 if it is not set.
  int64_t multiprocessors() const;
  // Returns the run with `value` for the unknown key. The first file must be a schedule if there is
  // no model.
  absl::StatusOr<synth::TrainingRun> MakeRun(std::optional<int64_t> value = std::nullopt) const;

  // Returns the files to open; for a model, one name for Open().
  const std::vector<std::string>& files() const { return files_; }
  // Returns the files on disk that are read, config files of a model too; no output may replace
  // them.
  const std::vector<std::string>& paths() const { return paths_; }
  // Does what OpenFile() does; for a model, the release is that of the run if none is
  // given. A file whose parameters are set must be a schedule.
  absl::StatusOr<OpenedFile> Open(const std::string& file, SettingsRequest request,
                                  size_t threads = 1) const;

 private:
  const synth::ModelKind* model_ = nullptr;
  std::string unknown_key_;
  std::vector<std::string> files_;
  std::vector<std::string> paths_;
  std::vector<synth::Setting> settings_;
  std::map<std::string, int64_t> params_;
};

// Reads "NAME=16" into `params`, and NAME of "NAME=?" into `unknown`; the latter is an error if
// `unknown` is null or not empty.
absl::Status ReadParameter(std::string_view text, std::map<std::string, int64_t>* params,
                           std::string* unknown);

// Returns the content of a file ("-" is standard input) of at most `most` bytes. Errors: those of
// ByteSource::Open(), ResourceExhausted for a larger file, a read that fails.
absl::StatusOr<std::string> ReadText(const std::string& path, uint64_t most);

// Returns whether the file begins as a report in JSON does. False for pipes, which cannot be read
// twice.
absl::StatusOr<bool> StartsLikeReport(const std::string& path);

}  // namespace memreplay
