// Standard output and the terminal.
#pragma once

#include <atomic>
#include <condition_variable>
#include <future>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "report/words/lines.h"
#include "sim/run/progress.h"

namespace google::protobuf {
class Message;
}

namespace memreplay {

// Writes all of `text` to standard output.
absl::Status Print(std::string_view text);
// The same for people: on a terminal, with colours and at its width.
absl::Status PrintText(const Text& text);
// The same for a help text, whose paragraphs are refilled where they are too wide.
absl::Status PrintHelpText(std::string_view text);

// Prints an answer: the whole report as JSON, or `text`.
absl::Status PrintAnswer(const google::protobuf::Message& answer, bool json,
                         absl::FunctionRef<Text()> text);

// Returns "\n  note\n" for each note that is not empty, to be printed below an answer.
std::string NoteLines(const std::vector<std::string>& notes);

// Prints one line on stderr: "memreplay: ...".
void PrintError(std::string_view message);

// Shows what is going on, on stderr if that is a terminal, after the first second; the line is
// wiped at the end. A thread of its own writes it.
class Progress final : public ProgressSink {
 public:
  // `activity` is shown as "reading step.pickle", cleaned by CleanText(). Where stderr is no
  // terminal, nothing is shown, or, for what takes long, one line each minute.
  explicit Progress(std::string_view activity, bool takes_long = false);
  ~Progress() override;
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void SetActivity(std::string_view activity) override;
  // Prints a line that stays, terminal or not.
  void Say(std::string_view sentence);
  // With a `total` of 0, which means unknown, no percentage is shown. Cheap; any thread may call
  // this.
  void SetTotal(size_t total) override { total_.store(total, std::memory_order_relaxed); }
  void SetDone(size_t done) override { done_.store(done, std::memory_order_relaxed); }
  void AddDone() override { done_.fetch_add(1, std::memory_order_relaxed); }
  bool visible() const { return shown_.valid(); }

 private:
  void Show();

  std::atomic<size_t> total_{0};
  std::atomic<size_t> done_{0};
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_terminal_ = false;
  bool finished_ = false;
  std::string activity_;
  std::future<void> shown_;
};

}  // namespace memreplay
