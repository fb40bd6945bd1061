#include "cli/flags/inputs.h"

#include <unistd.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "cli/flags/flags.h"
#include "cli/io/read_text.h"
#include "report/ask/file_report.h"
#include "trace/bytes/json_scanner.h"
#include "trace/program/program_reader.h"
#include "trace/value/status_macros.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

// Keys whose largest value can be searched for, because a larger value takes more memory.
constexpr std::string_view kSearchable[] = {"batch_size", "block_size", "seq_len", "n_layer",
                                            "n_layers"};

constexpr uint64_t kMaxConfigBytes = uint64_t{1} << 20;

// Error: there is no such file, but a model with nearly that name.
absl::Status CheckName(const std::string& name) {
  std::vector<std::string_view> models;
  for (const synth::ModelKind& model : synth::ModelKinds()) models.push_back(model.name);
  const std::string hint = DidYouMean(name, models);
  if (hint.empty() || access(name.c_str(), F_OK) == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(StrCat("there is neither a file nor a model ", name, hint));
}

}  // namespace

absl::Status ReadParameter(std::string_view text, std::map<std::string, int64_t>* params,
                           std::string* unknown) {
  const size_t equals = text.find('=');
  const std::string name(text.substr(0, equals));
  if (equals != std::string_view::npos && !name.empty()) {
    const std::string_view value = text.substr(equals + 1);
    if (value == "?" && unknown != nullptr && unknown->empty()) {
      *unknown = name;
      return absl::OkStatus();
    }
    if (const std::optional<int64_t> number = ParseInt64(value)) {
      (*params)[name] = *number;
      return absl::OkStatus();
    }
  }
  return absl::InvalidArgumentError(StrCat("--set: expected NAME=INTEGER",
                                           unknown == nullptr ? "" : " or, once, NAME=?",
                                           ", found '", text, "'"));
}

absl::StatusOr<Inputs> Inputs::Split(absl::Span<const std::string> args, const FlagSet& flags) {
  Inputs inputs;
  const size_t first = flags.EndOfLeading(args);
  if (first < args.size()) inputs.model_ = synth::FindModel(args[first]);
  if (inputs.model_ == nullptr) {
    RETURN_IF_ERROR(CheckName(first < args.size() ? args[first] : ""));
    bool flags_ended = false;
    for (size_t i = 0; i < args.size(); ++i) {
      const std::string_view word = args[i];
      flags_ended = flags_ended || word == "--";
      const bool is_set = !flags_ended && word == "--set";
      if (!is_set && (flags_ended || word.substr(0, 6) != "--set=")) {
        inputs.args_.push_back(args[i]);
        continue;
      }
      if (is_set && i + 1 == args.size()) {
        return absl::InvalidArgumentError("--set: expected NAME=VALUE");
      }
      RETURN_IF_ERROR(ReadParameter(is_set ? args[++i] : word.substr(6), &inputs.params_,
                                    &inputs.unknown_key_));
    }
    return inputs;
  }
  const synth::ModelKind& model = *inputs.model_;
  std::vector<std::string_view> names;
  const std::vector<synth::KeyInfo> keys = model.keys();
  for (const synth::KeyInfo& key : keys) names.push_back(key.name);
  for (size_t i = 0; i < args.size(); ++i) {
    if (i == first) continue;
    const std::string& word = args[i];
    const size_t equals = word.find('=');
    const std::string key = word.substr(0, 2) == "--" ? word.substr(2, equals - 2) : "";
    if (std::find(names.begin(), names.end(), key) != names.end()) {
      if (equals == std::string::npos && i + 1 == args.size()) {
        return absl::InvalidArgumentError(StrCat("--", key, ": expected a value"));
      }
      const std::string value = equals == std::string::npos ? args[++i] : word.substr(equals + 1);
      if (value == "?" &&
          std::find(std::begin(kSearchable), std::end(kSearchable), key) != std::end(kSearchable)) {
        if (!inputs.unknown_key_.empty()) {
          return absl::InvalidArgumentError(
              StrCat("--", inputs.unknown_key_, " and --", key, ": only one of them may be '?'"));
        }
        inputs.unknown_key_ = key;
        continue;
      }
      inputs.settings_.push_back({key, value});
    } else if (const std::string_view hint = model.hint(key); !hint.empty()) {
      return absl::InvalidArgumentError(StrCat(model.name, " has no key ", key, ": ", hint));
    } else if (key.find('_') != std::string::npos) {  // flags of commands have dashes
      return absl::InvalidArgumentError(StrCat(model.name, " has no key ", key,
                                               DidYouMean(key, names), "; memreplay synth ",
                                               model.name, " --help lists them"));
    } else {
      inputs.args_.push_back(word);
    }
  }
  return inputs;
}

absl::Status Inputs::SetNames(std::vector<std::string> names) {
  paths_ = names;
  if (model_ == nullptr) {
    files_ = std::move(names);
    return absl::OkStatus();
  }
  std::vector<synth::Setting> settings;
  for (const std::string& path : names) {
    ASSIGN_OR_RETURN(const std::string text, ReadText(path, kMaxConfigBytes));
    ASSIGN_OR_RETURN(const std::vector<synth::Setting> lines, synth::ReadConfigFile(text, path));
    settings.insert(settings.end(), lines.begin(), lines.end());
  }
  // Files come first and flags after them, as in nanoGPT's configurator.
  settings.insert(settings.end(), settings_.begin(), settings_.end());
  settings_ = std::move(settings);
  files_ = {StrCat("synth ", model_->name)};
  return absl::OkStatus();
}

std::string Inputs::name() const {
  if (model_ != nullptr) return std::string(model_->name);
  return files_.empty() ? "" : files_[0];
}

int64_t Inputs::multiprocessors() const {
  int64_t number = 0;
  for (const synth::Setting& setting : settings_) {
    if (setting.key == "multiprocessors") number = ParseInt64(setting.value).value_or(0);
  }
  return number;
}

absl::StatusOr<synth::TrainingRun> Inputs::MakeRun(std::optional<int64_t> value) const {
  if (model_ == nullptr) {
    program::CompileOptions options;
    options.params = params_;
    if (value.has_value()) options.params[unknown_key_] = *value;
    ASSIGN_OR_RETURN(Trace trace, program::OpenProgram(name(), options));
    return synth::TrainingRun{std::move(trace), 0, ""};
  }
  std::vector<synth::Setting> settings = settings_;
  if (value.has_value()) settings.push_back({unknown_key_, StrCat(*value)});
  return model_->make(settings);
}

absl::StatusOr<OpenedFile> Inputs::Open(const std::string& file, SettingsRequest request,
                                        size_t threads) const {
  if (!unknown_key_.empty()) {
    return absl::InvalidArgumentError(StrCat(model_ == nullptr ? "--set " : "--", unknown_key_,
                                             "=?: only memreplay fit searches for values"));
  }
  if (model_ == nullptr) {
    if (params_.empty()) return OpenFile(file, request, threads);
    program::CompileOptions options;
    options.params = params_;
    ASSIGN_OR_RETURN(Trace program, program::OpenProgram(file, options));
    return OpenFile(file, std::make_shared<const Trace>(std::move(program)), request);
  }
  ASSIGN_OR_RETURN(synth::TrainingRun run, MakeRun());
  if (!request.torch.has_value()) request.torch = AllocatorRelease(run.torch_version);
  return OpenFile(file, std::make_shared<const Trace>(std::move(run.program)), request);
}

}  // namespace memreplay
