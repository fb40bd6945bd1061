// The functions that the page's worker (worker.js) calls, with one session for each worker; the
// functions that they call in turn are in imports.js.
#include <google/protobuf/stubs/logging.h>
#include <google/protobuf/util/json_util.h>

#include <cstddef>
#include <new>
#include <string>
#include <string_view>
#include <utility>

#include "browser/session.h"
#include "proto/question.pb.h"
#include "report/words/render_json.h"
#include "sim/run/progress.h"

extern "C" {
// Reports progress to the page. A total of 0 means unknown.
void memreplay_progress(const char* activity, double done, double total);
// Throws a JavaScript exception, after which nothing here is called again.
void memreplay_out_of_memory();
}

namespace memreplay {
namespace {

class PageProgress final : public ProgressSink {
 public:
  void SetActivity(std::string_view activity) override {
    activity_ = activity;
    done_ = 0;
    total_ = 0;
    Report();
  }
  void SetTotal(size_t total) override { total_ = total; }
  void SetDone(size_t done) override {
    done_ = done;
    Report();
  }
  void AddDone() override { SetDone(done_ + 1); }

 private:
  void Report() const {
    memreplay_progress(activity_.c_str(), static_cast<double>(done_), static_cast<double>(total_));
  }

  std::string activity_;
  size_t done_ = 0;
  size_t total_ = 0;
};

struct Worker {
  Worker() {
    std::set_new_handler(memreplay_out_of_memory);
    google::protobuf::SetLogHandler(nullptr);  // the readers report what Protobuf's parsers reject
    offers = RenderJson(MakeOffers(), JsonLayout::kOneLine);
  }
  std::string words;  // a name or a question
  std::string bytes;  // of a file
  Session session;
  Answer answer;
  std::string offers;
};

Worker& TheWorker() {
  static Worker worker;
  return worker;
}

}  // namespace
}  // namespace memreplay

extern "C" {

// Returns room for `size` bytes of the next call's argument: its words (0) or a file's content (1).
char* memreplay_room(int which, size_t size) {
  memreplay::Worker& worker = memreplay::TheWorker();
  std::string& room = which == 0 ? worker.words : worker.bytes;
  room.resize(size);
  return room.data();
}

// Calls Session::Add(); the words are the file's name.
void memreplay_add() {
  memreplay::Worker& worker = memreplay::TheWorker();
  worker.session.Add(std::exchange(worker.words, {}), std::exchange(worker.bytes, {}));
}

// Calls Session::Ask(); the words are a Question as JSON. Returns the status.
int memreplay_ask() {
  memreplay::Worker& worker = memreplay::TheWorker();
  worker.answer = {};
  memreplay::proto::Question question;
  const auto status = google::protobuf::util::JsonStringToMessage(worker.words, &question);
  memreplay::PageProgress progress;
  if (status.ok()) {
    worker.answer = worker.session.Ask(question, &progress);
  } else {
    worker.answer.errors = "the question is not one: " + status.ToString();
  }
  return worker.answer.status;
}

// Calls ExplainLog(); the words are the log's name. Returns the status.
int memreplay_explain() {
  memreplay::Worker& worker = memreplay::TheWorker();
  worker.answer = {};
  worker.answer = memreplay::ExplainLog(worker.words, std::exchange(worker.bytes, {}));
  return worker.answer.status;
}

// Returns a part of the answer: the text (0), the errors (1) or the page (2), or what the page can
// offer (3).
const std::string* memreplay_part_string(int part) {
  const memreplay::Worker& worker = memreplay::TheWorker();
  const std::string* const parts[] = {&worker.answer.text, &worker.answer.errors,
                                      &worker.answer.page, &worker.offers};
  return parts[part];
}
const char* memreplay_part(int part) { return memreplay_part_string(part)->data(); }
size_t memreplay_part_size(int part) { return memreplay_part_string(part)->size(); }
}
