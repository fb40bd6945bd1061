#include "trace/formats/torch/torch_snapshot_reader.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "trace/bytes/json_reader.h"
#include "trace/bytes/pickle_reader.h"
#include "trace/bytes/value.h"
#include "trace/formats/torch/snapshot_assembly.h"
#include "trace/formats/torch/snapshot_records.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

// An entry with its stack takes 100 to 200 bytes of a file, and fills two or three slots of the
// memo. Reserved memory that is never touched costs nothing, but copying grown vectors does.
constexpr uint64_t kBytesPerEvent = 96;
constexpr uint64_t kBytesPerSlot = 64;
constexpr uint64_t kMaxReserved = 4'000'000;

}  // namespace

absl::StatusOr<Trace> ReadSnapshotJson(ByteSource& source, const std::string& path) {
  Trace trace;
  trace.format = "torch_snapshot_json";
  ValueHeap heap;
  SnapshotRecords records(heap, &trace);
  const absl::StatusOr<Value> root = ReadJson(source, heap, records);
  if (!root.ok()) return Within(path, root.status());
  const absl::Status status = SnapshotAssembly(heap, records, &trace, source.position()).Run(*root);
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
      SnapshotAssembly(heap, records, &trace, source.position()).Run(pickle->root);
  if (!status.ok()) return Within(path, status);
  return trace;
}

}  // namespace memreplay
