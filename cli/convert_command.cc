// memreplay convert IN OUT
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/flags.h"
#include "cli/output.h"
#include "cli/report_each.h"
#include "report/words/sizes.h"
#include "trace/formats/open_trace.h"
#include "trace/formats/write_trace.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

std::string FormatNames() {
  std::string names;
  for (const TraceFormat& format : WritableFormats()) {
    StrAppend(&names, names.empty() ? "" : ", ", format.name);
  }
  return names;
}

std::string Description() {
  std::string text =
      "Writes a file in another format. The format of IN is told from its bytes, that\n"
      "of OUT from --to or its extension; OUT - is standard output. What the format\n"
      "cannot hold is left out and named on stderr.\n"
      "\n"
      "formats:";
  for (const TraceFormat& format : WritableFormats()) {
    const std::string name(format.name);
    StrAppend(&text, "\n  ", name, std::string(name.size() < 24 ? 24 - name.size() : 1, ' '),
              format.description, " (", format.extensions, ")");
  }
  return text;
}

absl::StatusOr<const TraceFormat*> ChooseFormat(const std::string& to, const std::string& out) {
  const TraceFormat* format = to.empty() ? WritableFormatOfPath(out) : FindWritableFormat(to);
  if (format != nullptr) return format;
  if (to.empty()) {
    return absl::InvalidArgumentError(StrCat(
        "convert: the extension of ", out, " names no format; give --to, one of: ", FormatNames()));
  }
  std::vector<std::string_view> names;
  for (const TraceFormat& known : WritableFormats()) names.push_back(known.name);
  const std::string_view nearest = NearestWord(to, names);
  return absl::InvalidArgumentError(
      StrCat("convert: --to: expected one of ", FormatNames(), "; found '", to, "'",
             nearest.empty() ? std::string() : StrCat("; did you mean ", nearest, "?")));
}

}  // namespace

absl::StatusOr<int> RunConvert(absl::Span<const std::string> args) {
  std::string to;
  FlagSet flags("convert IN OUT [flags]", Description());
  flags.AddText("to", "FORMAT", &to, "format of OUT; without it, its extension decides");
  const absl::StatusOr<std::vector<std::string>> paths = flags.Parse(args);
  if (!paths.ok()) return InCommand("convert", paths.status());
  if (flags.help_requested()) return PrintHelp(flags.Help());
  if (paths->size() != 2) {
    return absl::InvalidArgumentError(StrCat("convert: expected IN and OUT, found ", paths->size(),
                                             " arguments; memreplay convert --help tells more"));
  }
  const std::string& in = (*paths)[0];
  const std::string& out = (*paths)[1];
  const absl::StatusOr<const TraceFormat*> format = ChooseFormat(to, out);
  if (!format.ok()) return format.status();

  Progress progress(StrCat("reading ", in));
  const absl::StatusOr<Trace> trace = OpenTrace(in);
  if (!trace.ok()) return trace.status();
  progress.SetActivity(StrCat("writing ", out));
  absl::StatusOr<OutputFile> file = OutputFile::Open(out);
  if (!file.ok()) return file.status();
  FileSink sink(&*file);
  std::vector<std::string> losses;
  const absl::Status written = (*format)->write(*trace, sink, &losses);
  const absl::Status closed = file->Close();
  if (!closed.ok()) return closed;
  if (!written.ok())
    return absl::Status(written.code(), StrCat(out, ": ", ToStd(written.message())));
  for (const std::string& loss : losses) PrintError(StrCat("left out of ", out, ": ", loss));
  return kExitAnswered;
}

}  // namespace memreplay
