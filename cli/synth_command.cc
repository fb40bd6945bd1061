// memreplay synth MODEL

#include <fstream>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "cli/command.h"
#include "cli/flags.h"
#include "cli/output.h"
#include "cli/report_each.h"
#include "cli/synth_program.h"
#include "report/prediction.h"
#include "report/render_json.h"
#include "sim/phase_usage.h"
#include "sim/replay_settings.h"
#include "sim/what_if.h"
#include "trace/schedule.h"
#include "trace/strings.h"
#include "trace/synth/nanogpt.h"

namespace memreplay {
namespace {

constexpr char kDescription[] =
    "Writes down what a training run will ask of GPU memory, without running it: MODEL\n"
    "is nanogpt. CONFIG is a nanoGPT config file (key = value); flags override it, under\n"
    "nanoGPT's own names. The program goes to standard output as flat JSON lines, or to\n"
    "the file that -o names; with --summary or --json what it needs is told instead:\n"
    "by phase, by category, and where and why memory runs out.\n"
    "\n"
    "Memory repeats itself after two iterations and two evaluation passes, so that\n"
    "--iterations and --eval_passes, not max_iters and eval_iters, say how much is\n"
    "written.\n"
    "\n"
    "Exit status 1 tells of memory that runs out (--summary, --json).\n"
    "\n"
    "memreplay synth FILE expands a schedule program instead (FILE has a dot or a slash\n"
    "in its name) or, with --check, tells what it asks for; synth FILE --help tells more.";

struct Options {
  SettingsRequest settings;
  std::optional<Bytes> context;
  std::string out;
  std::string to;
  bool summary = false;
  bool json = false;
};

absl::StatusOr<std::string> ReadText(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  if (!file.good() || text.str().size() > (1u << 20)) {
    return absl::NotFoundError(StrCat(path, ": expected a readable config file of at most 1 MiB"));
  }
  return text.str();
}

absl::StatusOr<int> Predict(Trace program, const PredictionContext& context,
                            const Options& options) {
  const auto trace = std::make_shared<const Trace>(std::move(program));
  const absl::StatusOr<ReplaySettings> settings = ResolveSettings(*trace, options.settings);
  if (!settings.ok()) return settings.status();
  const Schedule schedule = Schedule::Build(trace, 0);
  PhaseUsage usage(*trace);
  const absl::StatusOr<WhatIfResult> result = ReplayWhatIf(schedule, *settings, &usage);
  if (!result.ok()) return result.status();
  const proto::Report report = PredictionReport(context, *settings, usage);
  const absl::Status printed =
      Print(options.json ? RenderJson(report, JsonLayout::kIndented) : RenderPrediction(report));
  if (!printed.ok()) return printed;
  return usage.oom().has_value() ? kExitBad : kExitAnswered;
}

// Files first, flags after, as nanoGPT's configurator would apply them.
absl::StatusOr<int> SynthNanoGpt(const std::vector<std::string>& configs,
                                 const std::vector<synth::Setting>& given, const Options& options) {
  synth::NanoGptConfig config;
  std::vector<synth::Setting> settings;
  for (const std::string& path : configs) {
    const absl::StatusOr<std::string> text = ReadText(path);
    if (!text.ok()) return text.status();
    const absl::StatusOr<std::vector<synth::Setting>> lines = synth::ReadConfigFile(*text, path);
    if (!lines.ok()) return lines.status();
    settings.insert(settings.end(), lines->begin(), lines->end());
  }
  settings.insert(settings.end(), given.begin(), given.end());
  for (const synth::Setting& setting : settings) {
    const absl::Status applied = synth::ApplySetting(setting, &config);
    if (!applied.ok()) return applied;
  }
  absl::StatusOr<Trace> program = synth::NanoGptProgram(config);
  if (!program.ok()) return program.status();
  const bool predicts = options.summary || options.json;
  if (!predicts || !options.out.empty()) {
    const absl::Status written = WriteProgram(*program, options.out, options.to);
    if (!written.ok()) return written;
  }
  if (!predicts) return kExitAnswered;
  Options with_torch = options;
  // The allocator of PyTorch 1.x is nearest to that of 2.0.
  with_torch.settings.torch =
      config.torch_version.substr(0, 2) == "1." ? "2.0" : config.torch_version;
  PredictionContext context;
  context.model = "nanogpt";
  context.parameters = config.parameter_count();
  context.cuda_context = options.context.value_or(MiB(225));
  return Predict(*std::move(program), context, with_torch);
}

}  // namespace

absl::StatusOr<int> RunSynth(absl::Span<const std::string> args) {
  if (NamesProgramFile(args)) return RunSynthProgram(args);
  Options options;
  FlagSet flags("synth MODEL [CONFIG] [flags]", kDescription);
  flags.AddText("out", "FILE", &options.out,
                "where the program goes, also -o; - is standard output");
  flags.AddText("to", "FORMAT", &options.to, "its format; without it, FILE's extension decides");
  flags.AddSwitch("summary", &options.summary, "tell what it needs");
  flags.AddSwitch("json", &options.json, "tell it as JSON");
  flags.AddOptionalText("conf", "CONF", &options.settings.conf, "PYTORCH_CUDA_ALLOC_CONF");
  flags.AddSize("capacity", &options.settings.capacity, "memory that the allocator can get");
  flags.AddSize("context", &options.context, "of the CUDA context; 225 MiB if not given");
  const std::vector<synth::KeyInfo> keys = synth::NanoGptKeys();
  std::vector<std::optional<std::string>> values(keys.size());
  for (size_t i = 0; i < keys.size(); ++i) {
    flags.AddOptionalText(keys[i].name, keys[i].values, &values[i],
                          keys[i].default_value.empty()
                              ? std::string("known, without effect on memory")
                              : StrCat("default ", keys[i].default_value));
  }
  std::vector<std::string> words(args.begin(), args.end());
  for (std::string& word : words) {
    if (word == "-o") word = "--out";
    if (word.substr(0, 2) != "--") continue;
    const std::string key = word.substr(2, word.find('=') - 2);
    if (const std::string_view hint = synth::HintForKey(key); !hint.empty()) {
      return absl::InvalidArgumentError(StrCat("synth: nanoGPT has no key ", key, ": ", hint));
    }
  }
  const absl::StatusOr<std::vector<std::string>> names = flags.Parse(words);
  if (!names.ok()) return InCommand("synth", names.status());
  if (flags.help_requested()) return PrintHelp(flags.Help());
  if (names->empty() || (*names)[0] != "nanogpt") {
    return absl::InvalidArgumentError(
        StrCat("synth: expected a model (nanogpt) or the file of a program, found ",
               names->empty() ? std::string("none") : StrCat("'", (*names)[0], "'")));
  }
  std::vector<synth::Setting> given;
  for (size_t i = 0; i < keys.size(); ++i) {
    if (values[i].has_value()) {
      given.push_back({std::string(keys[i].name), *values[i]});
    }
  }
  const absl::StatusOr<int> status =
      SynthNanoGpt({names->begin() + 1, names->end()}, given, options);
  return status.ok() ? status : InCommand("synth", status.status());
}

}  // namespace memreplay
