#include "cli/io/output.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <utility>

#include "absl/strings/str_format.h"
#include "cli/io/terminal.h"
#include "report/words/render_json.h"
#include "report/words/text.h"
#include "trace/bytes/output_file.h"
#include "trace/value/launch.h"
#include "trace/value/strings.h"

namespace memreplay {

absl::Status PrintText(const Text& text) { return Print(ForTerminal(text, LookOfOutput())); }

absl::Status PrintHelpText(std::string_view text) {
  return Print(HelpForTerminal(text, LookOfOutput().width));
}

absl::Status Print(std::string_view text) {
  absl::StatusOr<OutputFile> out = OutputFile::Open("-", {});
  out->Write(text);
  return out->Close();
}

absl::Status PrintAnswer(const google::protobuf::Message& answer, bool json,
                         absl::FunctionRef<Text()> text) {
  return json ? Print(RenderJson(answer, JsonLayout::kIndented)) : PrintText(text());
}

std::string NoteLines(const std::vector<std::string>& notes) {
  std::string lines;
  for (const std::string& note : notes) {
    if (!note.empty()) StrAppend(&lines, "\n  ", note, "\n");
  }
  return lines;
}

void PrintError(std::string_view message) {
  // The message is one line, whatever a file put into it.
  const std::string line = StrCat("memreplay: ", CleanText(message), "\n");
  std::fputs(ForTerminal(line, {.width = WidthOfTerminal(STDERR_FILENO)}).c_str(), stderr);
}

namespace {
std::atomic<bool> progress_shown = false;  // several at once would overwrite each other
}  // namespace

Progress::Progress(std::string_view activity, bool takes_long) : activity_(CleanText(activity)) {
  is_terminal_ = isatty(STDERR_FILENO) == 1;
  if ((is_terminal_ || takes_long) && !progress_shown.exchange(true)) {
    shown_ = LaunchOn(2, [this] { Show(); });
  }
}

Progress::~Progress() {
  if (!shown_.valid()) return;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    finished_ = true;
  }
  changed_.notify_one();
  shown_.wait();
  progress_shown = false;
}

void Progress::SetActivity(std::string_view activity) {
  std::string clean = CleanText(activity);
  const std::lock_guard<std::mutex> lock(mutex_);
  activity_ = std::move(clean);
  total_ = 0;
  done_ = 0;
}

void Progress::Say(std::string_view sentence) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (shown_.valid() && is_terminal_) std::fputs("\r\x1b[K", stderr);
  PrintError(sentence);
}

void Progress::Show() {
  using std::chrono::milliseconds;
  using std::chrono::steady_clock;
  const auto begin = steady_clock::now();
  std::unique_lock<std::mutex> lock(mutex_);
  bool shown = false;
  milliseconds wait(is_terminal_ ? 1000 : 60'000);
  while (!changed_.wait_for(lock, wait, [this] { return finished_; })) {
    if (is_terminal_) wait = milliseconds(200);
    const double seconds = std::chrono::duration<double>(steady_clock::now() - begin).count();
    const size_t total = total_.load(std::memory_order_relaxed);
    const size_t done = done_.load(std::memory_order_relaxed);
    const std::string percent =
        total > 0  ? absl::StrFormat(" %.0f %%,", std::min(99.0, 100.0 * static_cast<double>(done) /
                                                                     static_cast<double>(total)))
        : done > 0 ? absl::StrFormat(" %d so far,", done)
                   : "";
    // The time that is left at the present speed.
    const std::string left =
        total == 0 || done == 0 || done >= total
            ? ""
            : absl::StrFormat(", %.0f s left", seconds * static_cast<double>(total - done) /
                                                   static_cast<double>(done));
    const std::string so_far = absl::StrFormat(":%s %.1f s%s", percent, seconds, left);
    if (!is_terminal_) {
      PrintError(activity_ + so_far);
      continue;
    }
    const std::string line = ProgressLine(activity_, so_far, WidthOfTerminal(2));
    std::fprintf(stderr, "\r\x1b[K%s", line.c_str());
    std::fflush(stderr);
    shown = true;
  }
  if (shown) std::fputs("\r\x1b[K", stderr);
}

}  // namespace memreplay
