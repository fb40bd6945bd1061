// memreplay explain LOG
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "cli/commands/command.h"
#include "cli/commands/help.h"
#include "cli/flags/flags.h"
#include "cli/io/output.h"
#include "report/message/explain.h"
#include "report/text/render.h"
#include "trace/bytes/byte_source.h"
#include "trace/value/status_macros.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

// Pipes and devices may be endless.
constexpr uint64_t kMaxStream = uint64_t{8} << 30;

constexpr size_t kStep = size_t{8} << 20;

// A mapped file's pages that were read count as this process's memory until they are released.
void ReleasePages(std::string_view piece) {
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const size_t before = reinterpret_cast<uintptr_t>(piece.data()) % page;
  const size_t length = (before + piece.size()) / page * page;
  if (length > 0) madvise(const_cast<char*>(piece.data()) - before, length, MADV_DONTNEED);
}

bool IsText(const std::string& source) {
  if (source.find_first_of(" \n") == std::string::npos) return false;
  std::error_code error;
  return !std::filesystem::exists(source, error);
}

absl::Status ReadInto(const std::string& path, LogScan* scan) {
  ASSIGN_OR_RETURN(const std::unique_ptr<ByteSource> source, ByteSource::Open(path));
  const bool is_stream = !source->remaining().has_value();
  Progress progress(StrCat("reading ", path));
  const bool is_mapped = !is_stream && source->encoding() == ByteSource::Encoding::kPlain;
  uint64_t seen = 0;
  for (std::string_view piece = source->Peek(1); !piece.empty(); piece = source->Peek(1)) {
    piece = piece.substr(0, kStep);
    seen += piece.size();
    if (is_stream && seen > kMaxStream) {
      return absl::ResourceExhaustedError(
          StrCat(path, ": expected at most ", kMaxStream, " bytes, found more"));
    }
    scan->Add(piece);
    if (is_mapped) ReleasePages(piece);
    source->Skip(piece.size());
  }
  if (source->status().ok()) return absl::OkStatus();
  return Within(path, source->status());
}

}  // namespace

absl::StatusOr<int> PrintExplanation(const std::string& source, bool json) {
  LogScan scan;
  const bool is_text = IsText(source);
  if (is_text) {
    scan.Add(source);
  } else
    RETURN_IF_ERROR(ReadInto(source, &scan));
  absl::StatusOr<proto::Report> report = Explain(&scan);
  if (!report.ok()) {
    return absl::Status(report.status().code(), StrCat(is_text ? "the text given" : source, ": ",
                                                       ToStd(report.status().message())));
  }
  if (!is_text) report->set_file(source);
  RETURN_IF_ERROR(
      PrintAnswer(*report, json, [&] { return RenderExplanationText(report->explanation()); }));
  return kExitBad;
}

absl::StatusOr<int> RunExplain(const CommandLine& line) {
  bool json = false;
  FlagSet flags("explain LOG [flags]", kExplainHelp);
  flags.AddSwitch("json", &json, "print the answer as JSON: explanation (proto/explanation.proto)");
  const absl::StatusOr<std::vector<std::string>> logs = flags.Parse(line.args);
  if (!logs.ok()) return Within("explain", logs.status());
  if (flags.help_requested()) return ShowHelp(line, flags);
  if (logs->size() != 1) {
    return absl::InvalidArgumentError(
        "explain: expected one LOG: a file, - for standard input, or the text, quoted as a whole; "
        "see memreplay explain --help");
  }
  return PrintExplanation(logs->front(), json);
}

}  // namespace memreplay
