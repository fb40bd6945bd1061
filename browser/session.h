// The commands of memreplay as questions about files in memory: no paths, no flags, no printing.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/question.pb.h"
#include "report/page/render_html.h"
#include "sim/recording/replay_settings.h"
#include "sim/run/progress.h"
#include "sim/study/study.h"
#include "trace/value/trace.h"

namespace memreplay {

// The answer that the binary would give to the same question.
struct Answer {
  int status = 2;           // its exit status
  std::string text = {};    // its standard output
  std::string errors = {};  // its standard error, one line for each, without its name
  std::string page = {};    // of "report": the HTML file
};

// Returns the answer to an error text or a log, plain or compressed, as `explain` gives it.
Answer ExplainLog(std::string_view name, std::string bytes);

// Returns what a page can offer: the version, the releases and the GPUs that Ask() accepts.
proto::Offers MakeOffers();

// Files that were opened once, for any number of questions. A file is read when it is added, and
// what was learned about it is kept as long as the questions have the same settings.
class Session {
 public:
  // Adds a file after the existing ones. Takes `bytes`, plain or compressed. A file that cannot be
  // read is kept as its error, which is its part of every answer. O(bytes).
  void Add(std::string name, std::string bytes);

  // Answers a question about all files; for diff, about the difference between two. `progress` is
  // not null. Costs as much as the command, without reading.
  Answer Ask(const proto::Question& question, ProgressSink* progress);

 private:
  struct File {
    std::string name;
    absl::Status error = {};                  // of reading
    std::shared_ptr<const Trace> trace = {};  // null: an error
    SettingsRequest request = {};             // of `opened`
    std::optional<OpenedFile> opened = {};
  };

  absl::StatusOr<const OpenedFile*> Open(File& file, const SettingsRequest& request);
  // Returns the report of one file, with its runs if the question is "report".
  absl::StatusOr<PageInput> AskFile(File& file, const proto::Question& question,
                                    const SettingsRequest& request, ProgressSink* progress);
  Answer AskDiff() const;

  std::vector<File> files_;
};

}  // namespace memreplay
