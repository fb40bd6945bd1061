#include "cli/flags/inputs.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string_view>
#include <system_error>
#include <utility>

#include "absl/algorithm/container.h"
#include "cli/flags/flags.h"
#include "report/ask/file_report.h"
#include "report/ask/parse_json.h"
#include "trace/bytes/byte_source.h"
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
  return InvalidArgument("there is neither a file nor a model ", name, hint);
}

// Registers the keys of a model as flags: their values go to `settings`, and the names of those
// that are to be searched to `searched`.
void AddKeys(const synth::ModelKind& model, std::vector<synth::Setting>* settings,
             std::vector<std::string>* searched, FlagSet* flags) {
  std::vector<std::string_view> names;
  for (const synth::KeyInfo& key : model.keys()) {
    names.push_back(key.name);
    flags->AddUnlisted(key.name, key.values.empty() ? "VALUE" : key.values,
                       key.default_value.empty() ? "without effect on memory"
                                                 : StrCat("default ", key.default_value),
                       [settings, searched, name = std::string(key.name)](std::string_view value) {
                         const bool is_searched = value == "?" && absl::c_find(kSearchable, name) !=
                                                                      std::end(kSearchable);
                         if (is_searched) {
                           searched->push_back(name);
                         } else {
                           settings->push_back({name, std::string(value)});
                         }
                         return absl::OkStatus();
                       });
  }
  flags->AddUnknown([&model, names = std::move(names)](std::string_view key) -> absl::Status {
    const std::string_view hint = model.hint(key);
    // Flags of commands have dashes.
    if (hint.empty() && key.find('_') == key.npos) return absl::OkStatus();
    return InvalidArgument(model.name, " has no key ", key,
                           hint.empty() ? StrCat(DidYouMean(key, names), "; memreplay synth ",
                                                 model.name, " --help lists them")
                                        : StrCat(": ", hint));
  });
}

constexpr size_t kLookedAt = 4096;

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
  return InvalidArgument("expected NAME=INTEGER", unknown == nullptr ? "" : " or, once, NAME=?",
                         ", found '", text, "'");
}

absl::StatusOr<Inputs> Inputs::Parse(absl::Span<const std::string> args, FlagSet* flags) {
  Inputs inputs;
  const size_t first = flags->EndOfLeading(args);
  const std::string name = first < args.size() ? args[first] : "";
  inputs.model_ = synth::FindModel(name);
  std::vector<std::string> searched;  // keys whose value is "?"
  if (inputs.model_ != nullptr) {
    AddKeys(*inputs.model_, &inputs.settings_, &searched, flags);
  } else {
    flags->AddUnlisted("set", "NAME=N", "the value of a parameter of the schedule",
                       [&inputs](std::string_view text) {
                         return ReadParameter(text, &inputs.params_, &inputs.unknown_key_);
                       });
  }
  absl::StatusOr<std::vector<std::string>> names = flags->Parse(args);
  if (flags->help_requested()) return inputs;
  if (inputs.model_ == nullptr) {
    RETURN_IF_ERROR(CheckName(name));
    ASSIGN_OR_RETURN(inputs.files_, std::move(names));
    inputs.paths_ = inputs.files_;
    return inputs;
  }
  if (!names.ok()) return names.status();
  if (searched.size() > 1) {
    return InvalidArgument("--", searched[0], " and --", searched[1],
                           ": only one of them may be '?'");
  }
  if (!searched.empty()) inputs.unknown_key_ = searched[0];
  inputs.paths_.assign(names->begin() + 1, names->end());
  std::vector<synth::Setting> settings;
  for (const std::string& path : inputs.paths_) {
    ASSIGN_OR_RETURN(const std::string text, ReadText(path, kMaxConfigBytes));
    ASSIGN_OR_RETURN(const std::vector<synth::Setting> lines, synth::ReadConfigFile(text, path));
    settings.insert(settings.end(), lines.begin(), lines.end());
  }
  // Files come first and flags after them, as in nanoGPT's configurator.
  settings.insert(settings.end(), inputs.settings_.begin(), inputs.settings_.end());
  inputs.settings_ = std::move(settings);
  inputs.files_ = {StrCat("synth ", name)};
  return inputs;
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
    return InvalidArgument(model_ == nullptr ? "--set " : "--", unknown_key_,
                           "=?: only memreplay fit searches for values");
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

absl::StatusOr<std::string> ReadText(const std::string& path, uint64_t most) {
  ByteSource::Limits limits;
  limits.max_bytes = most;
  ASSIGN_OR_RETURN(std::unique_ptr<ByteSource> source, ByteSource::Open(path, limits));
  const bool is_stream = !source->remaining().has_value();
  std::string text;
  for (std::string_view piece = source->Peek(1); !piece.empty(); piece = source->Peek(1)) {
    if (is_stream && text.size() + piece.size() > most) {
      return absl::ResourceExhaustedError(
          StrCat(path, ": expected at most ", most, " bytes, found more"));
    }
    text.append(piece);
    source->Skip(piece.size());
  }
  if (!source->status().ok()) return Within(path, source->status());
  return text;
}

absl::StatusOr<bool> StartsLikeReport(const std::string& path) {
  std::error_code error;
  if (std::filesystem::exists(path, error) && !std::filesystem::is_regular_file(path, error)) {
    return false;
  }
  ASSIGN_OR_RETURN(const std::unique_ptr<ByteSource> source, ByteSource::Open(path));
  return LooksLikeReport(source->Peek(kLookedAt));
}

}  // namespace memreplay
