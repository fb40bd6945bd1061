#include <algorithm>
#include <memory>
#include <thread>
#include <utility>

#include "absl/strings/escaping.h"
#include "trace/bytes/json_reader.h"
#include "trace/bytes/pickle_reader.h"
#include "trace/bytes/value.h"
#include "trace/formats/torch/snapshot_records.h"
#include "trace/formats/torch/torch_snapshot.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

// An entry with its stack takes 100 to 200 bytes of a file, and fills two or three slots of the
// memo. Reserved memory that is never touched costs nothing, but copying grown vectors does.
constexpr uint64_t kBytesPerEvent = 96;
constexpr uint64_t kBytesPerSlot = 64;
constexpr uint64_t kMaxReserved = 4'000'000;

// What is in front of the pickle in a page, as base64 and filled up with zero bytes.
constexpr std::string_view kPagePickle = "\"base64\": \"";

}  // namespace

absl::StatusOr<Trace> ReadSnapshotJson(ByteSource& source, const std::string& path) {
  Trace trace;
  trace.format = "torch_snapshot_json";
  ValueHeap heap;
  SnapshotRecords records(heap, &trace);
  const absl::StatusOr<Value> root = ReadJson(source, heap, records);
  if (!root.ok()) return Within(path, root.status());
  const absl::Status status = AssembleSnapshot(*root, source.position(), heap, records, &trace);
  if (!status.ok()) return Within(path, status);
  return trace;
}

bool IsSnapshotJson(std::string_view head) {
  head.remove_prefix(head.starts_with("\xef\xbb\xbf") ? 3 : 0);
  head.remove_prefix(std::min(head.find_first_not_of(" \t\r\n"), head.size()));
  const auto has = [&](std::string_view text) { return head.find(text) != head.npos; };
  if (head.starts_with('{')) return has("\"segments\"") || has("\"device_traces\"");
  return head.starts_with('[') && has("\"total_size\"");
}

bool IsSnapshotPickle(std::string_view head) { return !head.empty() && head[0] == '\x80'; }

absl::StatusOr<Trace> ReadSnapshotPickle(ByteSource& source, const std::string& path) {
  return ReadSnapshotPickle(source, path,
                            std::thread::hardware_concurrency() > 1 ? kPickleShare : 0);
}

absl::StatusOr<Trace> ReadSnapshotPickle(ByteSource& source, const std::string& path,
                                         size_t share) {
  Trace trace;
  trace.format = "torch_snapshot_pickle";
  ValueHeap heap;
  SnapshotRecords records(heap, &trace);
  if (const auto bytes = source.remaining(); bytes.has_value()) {
    records.Reserve(std::min(*bytes / kBytesPerEvent, kMaxReserved));
    heap.ReserveMemo(std::min(*bytes / kBytesPerSlot, kMaxReserved));
  }
  const absl::StatusOr<Pickle> pickle = ReadPickle(source, heap, records, share);
  if (!pickle.ok()) return Within(path, pickle.status());
  trace.layout.pickle_protocol = pickle->protocol;
  const absl::Status status =
      AssembleSnapshot(pickle->root, source.position(), heap, records, &trace);
  if (!status.ok()) return Within(path, status);
  return trace;
}

bool IsSnapshotPage(std::string_view head) {
  return head.find("<script") != head.npos && head.find(kPagePickle) != head.npos;
}

absl::StatusOr<Trace> ReadSnapshotPage(ByteSource& source, const std::string& path) {
  std::string_view page = source.Peek(1);
  while (!source.remaining().has_value()) page = source.Peek(page.size() + 1);
  if (!source.status().ok()) return Within(path, source.status());
  const size_t begin = page.find(kPagePickle) + kPagePickle.size();
  const size_t end = page.find('"', begin);
  const auto fail = [&](size_t at, std::string_view expected, std::string_view found) {
    return absl::InvalidArgumentError(
        StrCat(path, ": byte ", at, ": expected ", expected, ", found ", found));
  };
  if (end == page.npos) return fail(page.size(), "the end of a snapshot", "the end of the page");
  std::string bytes;
  if (!absl::Base64Unescape(ToAbsl(page.substr(begin, end - begin)), &bytes)) {
    return fail(begin, "a snapshot in base64", "other text");
  }
  absl::StatusOr<std::unique_ptr<ByteSource>> pickle = ByteSource::FromBytes(std::move(bytes));
  if (!pickle.ok() || !IsSnapshotPickle((*pickle)->Peek(1))) {
    return fail(begin, "the pickle of a snapshot in base64", "something else");
  }
  absl::StatusOr<Trace> trace =
      ReadSnapshotPickle(**pickle, StrCat(path, ": snapshot of the page"));
  if (trace.ok()) trace->format = "torch_snapshot_page";
  return trace;
}

}  // namespace memreplay
