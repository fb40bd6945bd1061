#include <google/protobuf/repeated_field.h>

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "report/text/render.h"
#include "report/words/holding.h"
#include "report/words/lines.h"
#include "report/words/record_faults.h"
#include "report/words/sizes.h"
#include "report/words/text.h"
#include "trace/value/bounded.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

constexpr int kMaxValues = 10;           // that were read although nothing had computed them
constexpr int kMaxRows = 10;             // of graph breaks, recompilations, lines that pin memory
constexpr int64_t kWorthARow = 1 << 20;  // bytes of pinned memory, unless --host-memory asks
constexpr size_t kMaxReason = 120;       // bytes
constexpr size_t kMaxProgramLength = 240;

// Returns "NVIDIA GeForce RTX 4090 (simulated)".
std::string CardText(const proto::RecordedProcess& process) {
  if (process.cards().empty()) return "no GPU";
  return StrCat(CleanText(process.cards(0).name()), process.has_card() ? " (simulated)" : "");
}

// Returns what a part of a run took, of which the rest may take more.
std::string UpToThere(const proto::RecordedProcess& process) {
  int64_t reserved = 0, left = INT64_MAX;
  for (const proto::RecordedCard& card : process.cards()) {
    reserved = std::max(reserved, card.peak_reserved());
    left = std::min(left, card.spare());
  }
  if (reserved == 0) return " before it allocated any memory";
  return StrCat("; up to there it reserved ", FormatSize(reserved), ", with ", FormatSize(left),
                " left, and the whole run may need more");
}

std::string Verdict(const proto::RecordReport& report, const proto::RecordedProcess& process) {
  const std::string status = StrCat("the script ended with status ", report.exit_status());
  switch (EndOf(report, process)) {
    case RunEnd::kRanOut: {
      const bool is_its_end =
          !process.refusal().empty() || absl::StrContains(process.error(), "OutOfMemoryError");
      return StrCat("OUT OF MEMORY ", FormatCount(process.ooms(), "time"),
                    is_its_end ? ""
                    : !process.error().empty()
                        ? StrCat(", and the script continued until ", CleanText(process.error()))
                    : report.exit_status() != 0 ? StrCat(", and ", status)
                                                : ", and the script continued");
    }
    case RunEnd::kRefused:
      return StrCat("NOT ENOUGH MEMORY: ",
                    CleanText(process.refusal().empty() ? report.refusal() : process.refusal()));
    case RunEnd::kFailed:
      return StrCat(process.error().empty()
                        ? status
                        : StrCat("stopped by an error, ", CleanText(process.error())),
                    UpToThere(process));
    case RunEnd::kStopped:
      return StrCat("stopped by ",
                    process.stopped_after_steps() > 0 ? "--steps" : CleanText(report.stopped_by()),
                    UpToThere(process));
    case RunEnd::kWhole: break;
  }
  if (process.cards().empty()) return "it ran";
  int64_t spare = INT64_MAX;
  for (const proto::RecordedCard& card : process.cards()) spare = std::min(spare, card.spare());
  return StrCat("it fits, ", FormatSize(spare), " to spare");
}

using OutsideRows = google::protobuf::RepeatedPtrField<proto::ImaginedCard::Outside>;

std::string LibraryText(const proto::ImaginedCard::Outside& outside) {
  return StrCat(outside.library().empty() ? "the program" : CleanText(outside.library()),
                absl::StartsWith(outside.library(), "libffi.") ? " (ctypes)" : "");
}

// Returns "at most 300 MiB by libcupy_backends.so in 2 calls of cudaMalloc, ...".
std::string OutsideText(const OutsideRows& rows, int device) {
  std::vector<std::string> parts;
  for (const proto::ImaginedCard::Outside& outside : rows) {
    if (outside.device() != device || outside.function().empty()) continue;
    parts.push_back(StrCat(
        "at most ", FormatSize(outside.peak()),
        outside.function() == "cuMemAddressReserve" ? " of addresses, not memory," : "", " by ",
        LibraryText(outside), " in ", FormatCount(outside.calls(), "call"), " of ",
        CleanText(outside.function()), ", the peak after ", FormatCount(outside.peak_at(), "event"),
        outside.torchs_peak() > 0 ? StrCat(" (PyTorch's allocator manages at most ",
                                           FormatSize(outside.torchs_peak()), " of it)")
                                  : ""));
  }
  return absl::StrJoin(parts, ", ");
}

// Returns "libtorch_cuda.so 9 modules, 37 kernels, 1 cuBLAS handle; ...".
std::string ObjectsText(const OutsideRows& rows, int device) {
  std::vector<std::pair<std::string, std::string>> libraries;  // in order of the first object
  for (const proto::ImaginedCard::Outside& outside : rows) {
    if (outside.device() != device || outside.object().empty() || outside.most() == 0) continue;
    const std::string name = LibraryText(outside);
    const std::string objects = FormatCount(outside.most(), CleanText(outside.object()));
    const auto found =
        absl::c_find_if(libraries, [&](const auto& library) { return library.first == name; });
    if (found == libraries.end()) {
      libraries.emplace_back(name, objects);
    } else {
      StrAppend(&found->second, ", ", objects);
    }
  }
  return absl::StrJoin(libraries, "; ", absl::PairFormatter(" "));
}

// Returns "about 4.31 GiB for the process at its peak, from 4.28 to 4.36 GiB: ...".
std::string ProcessMemoryText(const proto::RecordedCard::ProcessMemory& memory) {
  const auto range = [](int64_t low, int64_t high) {
    return StrCat(FormatSize(low), " to ", FormatSize(high));
  };
  std::vector<std::string> parts;
  for (const auto& part : memory.parts()) {
    parts.push_back(StrCat(FormatSize(part.bytes()), " ", CleanText(part.what()),
                           part.reports() == 0
                               ? ""
                               : StrCat(" (", range(part.low(), part.high()), " by ",
                                        FormatCount(part.reports(), "public report"), ")")));
  }
  return StrCat("about ", FormatSize(memory.bytes()), " for the process at its peak, ",
                range(memory.low(), memory.high()), ": ", absl::StrJoin(parts, ", "));
}

void AppendCards(const proto::RecordedProcess& process, std::string* text) {
  for (int i = 0; i < process.cards_size(); ++i) {
    const proto::RecordedCard& card = process.cards(i);
    if (process.cards_size() > 1 && card.peak_reserved() == 0) continue;
    if (process.cards_size() > 1) StrAppend(text, "  device ", i, "\n");
    AddRow(text, "peak reserved", FormatSizeExactly(card.peak_reserved()));
    AddRow(text, "peak allocated", FormatSizeExactly(card.peak_allocated()));
    AddRow(text, "card", FormatSizeExactly(card.capacity()),
           process.card().reserve() == 0
               ? ""
               : StrCat(", of which ", FormatSize(process.card().reserve()), kAssumedOutside,
                        process.card().reserve_reason().empty()
                            ? ""
                            : StrCat(" (", CleanText(process.card().reserve_reason()), ")")));
    const OutsideRows& rows = process.has_card() ? process.card().outside() : process.outside();
    const std::string outside = OutsideText(rows, i);
    if (card.outside() > 0 || !outside.empty()) {
      AddRow(text, "outside", process.has_card() ? StrCat(FormatSize(card.outside()), " ") : "",
             "allocated outside PyTorch's allocator", outside.empty() ? "" : ": ", outside);
    }
    const std::string objects = ObjectsText(rows, i);
    if (!objects.empty()) AddRow(text, "objects", objects);
    if (card.has_nvidia_smi()) AddRow(text, "nvidia-smi", ProcessMemoryText(card.nvidia_smi()));
    if (card.retries() > 0) AddRow(text, "retries", FormatCount(card.retries()));
  }
}

void AppendPinned(const proto::RecordedProcess& process, std::string* text) {
  const auto& pinned = process.card().pinned();
  const bool is_asked = pinned.refused() > 0 || pinned.limit() > 0;
  if (!is_asked && pinned.peak() < kWorthARow) return;
  std::string row = StrCat(FormatSizeExactly(pinned.peak()), " of host memory at the peak, in ",
                           FormatCount(pinned.blocks(), "block"));
  if (pinned.refused() > 0) {
    StrAppend(&row, "; HOST MEMORY RAN OUT: ", FormatCount(pinned.refused(), "request"),
              " exceeded ",
              pinned.limit() > 0 ? StrCat("the ", FormatSize(pinned.limit()), " of --host-memory")
                                 : "what the GPU, whose memory is the host's, had left");
  } else if (pinned.limit() > 0) {
    StrAppend(&row, "; it fits, ", FormatSize(pinned.limit() - pinned.peak()), " of the ",
              FormatSize(pinned.limit()), " of --host-memory to spare");
  }
  std::vector<proto::ImaginedCard::Pinned::Line> lines(pinned.lines().begin(),
                                                       pinned.lines().end());
  int64_t requested = 0;
  for (const auto& line : lines) requested = BoundedSum(requested, line.requested());
  if (!lines.empty()) {
    StrAppend(&row, "; PyTorch, which rounds requests up and keeps freed blocks, needed it for ",
              FormatSize(requested));
  }
  if (pinned.unrounded_peak() > 0 && pinned.unrounded_peak() < pinned.peak()) {
    StrAppend(&row, "; with pinned_max_round_threshold_mb:1 (PyTorch 2.13 and newer) ",
              FormatSize(pinned.unrounded_peak()));
  } else if (!pinned.unmodelled().empty()) {
    StrAppend(&row, "; what pinned_max_round_threshold_mb:1 would change is unknown, because ",
              CleanText(pinned.unmodelled()), " is not modelled");
  }
  StrAppend(&row,
            pinned.from_gpu() != 0 ? "; it comes out of the GPU's memory, which is the host's" : "",
            "; unpinned memory and other processes are not counted");
  AddRow(text, "pinned", row);
  absl::c_sort(lines, [](const auto& a, const auto& b) {
    return std::make_tuple(-a.held(), a.place()) < std::make_tuple(-b.held(), b.place());
  });
  for (size_t i = 0; i < lines.size() && i < size_t{kMaxRows}; ++i) {
    StrAppend(text, "  - ", CleanText(lines[i].place()), ": ", FormatSize(lines[i].requested()),
              " requested, ", FormatSize(lines[i].held()), " pinned in ",
              FormatCount(lines[i].blocks(), "block"), "\n");
  }
  if (lines.size() > size_t{kMaxRows}) {
    StrAppend(text, "  - ", FormatCount(static_cast<int64_t>(lines.size() - kMaxRows), "more line"),
              ", which --json lists\n");
  }
}

// Appends who holds memory, by what was asked of the live process.
void AppendHolding(const proto::RecordedProcess& process, std::string* text) {
  int64_t spare = process.ooms() > 0 || process.cards().empty() ? 0 : INT64_MAX;
  for (const proto::RecordedCard& card : process.cards()) spare = std::min(spare, card.spare());
  const proto::Diagnosis held = HoldingWords(process.holding(), spare);
  for (const std::string* part : {&held.what(), &held.why(), &held.do_()}) {
    StrAppend(text, *part, part->empty() ? "" : "\n");
  }
}

void AppendDiagnoses(const proto::RecordedProcess& process, std::string* text) {
  for (const proto::RecordedReplay& replay : process.replays()) {
    if (replay.events() == 0 || replay.diagnosis().what().empty()) continue;
    StrAppend(text, process.replays_size() > 1 ? StrCat("device ", replay.device(), ": ") : "",
              CleanText(DiagnosisText(replay.diagnosis())), "\n");
  }
}

// Appends which texts are shorter than on a real GPU, and how to avoid that.
void AppendGenerations(const proto::RecordedProcess& process, std::string* text) {
  for (const auto& generation : process.values().generations()) {
    StrAppend(text, "Generation ended early: ", CleanText(generation.place()), " got ",
              FormatCount(generation.tokens()), " of ", FormatCount(generation.of(), "token"),
              generation.times() > 1 ? StrCat(", ", FormatCount(generation.times(), "time")) : "",
              ", because a token that was never computed is one that ends a text; "
              "eos_token_id=None generates all of them.\n");
  }
}

// Appends how a server divides the GPU's memory.
void AppendServer(const proto::RecordedProcess& process, std::string* text) {
  for (const proto::RecordedReplay& replay : process.replays()) {
    if (!replay.has_server()) continue;
    const proto::RecordedReplay::ServerBudget& server = replay.server();
    AddRow(text, "weights", FormatSizeExactly(server.weights()));
    AddRow(text, "profile run", FormatSizeExactly(server.profile()), " more at its peak");
    std::string cache = StrCat(FormatSizeExactly(server.cache()), " of keys and values in ",
                               FormatCount(server.tensors(), "tensor"));
    if (process.has_cache()) {
      StrAppend(&cache, ": ", FormatCount(process.cache().blocks(), "block"),
                process.cache().tokens() > 0
                    ? StrCat(" for ", FormatCount(process.cache().tokens(), "token"))
                    : "");
    }
    AddRow(text, "KV cache", cache);
    AddRow(text, "CUDA graphs", FormatSizeExactly(server.graphs()), " in private pools");
    AddRow(text, "other", FormatSizeExactly(server.other()), " reserved by PyTorch");
    AddRow(text, "left", FormatSizeExactly(server.left()), " of the GPU");
  }
}

void AppendReplays(const proto::RecordedProcess& process, std::string* text) {
  for (const proto::RecordedReplay& replay : process.replays()) {
    if (replay.events() == 0) continue;
    if (!replay.peak_stack().empty()) {
      AddRow(text, "peak at", CleanText(replay.peak_stack()));
    } else if (!replay.stack_before().empty()) {
      AddRow(text, "peak at", "no stack recorded, ", FormatCount(replay.events_since(), "event"),
             " after ", CleanText(replay.stack_before()), "; --stacks all also records C++ frames");
    }
    if (replay.at_once_peak_reserved() > 0) {
      AddRow(text, "at once", FormatSizeExactly(replay.at_once_peak_reserved()),
             " reserved at the peak if work on side streams finishes as soon as "
             "the allocator asks");
    }
    AddRow(text, "replay", CleanText(replay.sentence()));
  }
}

void AppendAssumptions(const proto::RecordedProcess& process, std::string* text) {
  std::vector<std::string> rows;
  if (const std::string late = LateStateText(process.late_state()); !late.empty()) {
    rows.push_back(late);
  }
  for (const auto& assumption : process.card().assumptions()) {
    rows.push_back(
        StrCat(CleanText(assumption.what()), ", ", FormatCount(assumption.calls(), "call")));
  }
  for (const auto& unknown : process.card().unknown()) {
    rows.push_back(StrCat(CleanText(unknown.name()), " of ", CleanText(unknown.library()),
                          " is not modelled: ", CleanText(unknown.answer()), ", ",
                          FormatCount(unknown.calls(), "call")));
  }
  for (const auto& replay : process.replays()) {
    for (const std::string& note : replay.notes()) rows.push_back(CleanText(note));
  }
  for (const std::string& lost : process.lost()) {
    rows.push_back(StrCat("not noted: ", CleanText(lost)));
  }
  if (process.randomized()) {
    rows.emplace_back(
        "host addresses are randomised, and autocast clears its cache in their order, so figures "
        "can differ slightly from run to run");
  }
  const auto& asked = process.values().asked();
  for (int i = 0; i < asked.size() && i < kMaxValues; ++i) {
    rows.push_back(StrCat(CleanText(asked[i].place()), " read a value that was never computed (",
                          CleanText(asked[i].what()), "), ", FormatCount(asked[i].times(), "time"),
                          ", and got ", CleanText(asked[i].answer())));
  }
  if (asked.size() > kMaxValues) {
    rows.push_back(StrCat(FormatCount(asked.size() - kMaxValues, "more line"),
                          " read such values; --json lists them"));
  }
  if (rows.empty()) return;
  StrAppend(text, "\n  assumed\n");
  for (const std::string& row : rows) StrAppend(text, "  - ", row, "\n");
}

void AppendRows(const google::protobuf::RepeatedPtrField<proto::Compilations::Row>& rows,
                std::string_view of, std::string* text) {
  for (int i = 0; i < rows.size() && i < kMaxRows; ++i) {
    StrAppend(text, "  - ", CleanText(rows[i].place()), ": ", of, " ",
              FormatCount(rows[i].times(), "time"), ": ", CleanText(rows[i].reason(), kMaxReason),
              "\n");
  }
  if (rows.size() > kMaxRows) {
    StrAppend(text, "  - ", FormatCount(rows.size() - kMaxRows, "more place"),
              ", which --json lists\n");
  }
}

void AppendCompilations(const proto::RecordedProcess& process, std::string* text) {
  const proto::Compilations& made = process.compilations();
  if (!process.has_compilations()) return;
  const auto sum = [](const auto& rows) {
    int64_t times = 0;
    for (const auto& row : rows) times = BoundedSum(times, row.times());
    return times;
  };
  AddRow(text, "torch.compile", FormatCount(made.graphs(), "graph"), ", ",
         FormatCount(sum(made.breaks()), "graph break"), ", ",
         FormatCount(sum(made.recompilations()), "recompilation"));
  AppendRows(made.breaks(), "the graph broke", text);
  AppendRows(made.recompilations(), "the function that begins here was compiled again", text);
}

// Appends the next step after memory ran out.
void AppendNextStep(const proto::RecordReport& report, std::string* text) {
  for (const proto::RecordedProcess& process : report.processes()) {
    if (process.ooms() == 0) continue;
    StrAppend(
        text, "\n  memreplay oom ", CleanText(process.snapshot()), kNextSteps,
        "  memreplay advise, with the same flags and script, finds changes with which it fits;\n"
        "  memreplay fit script   finds the largest batch with which the script fits.\n");
    return;
  }
}

// Appends what several processes take of one GPU, because each is recorded as if it had its GPU to
// itself.
void AppendShared(const proto::RecordReport& report, Text* text) {
  struct Shared {
    int64_t processes = 0, taken = 0, capacity = 0;
  };
  std::map<std::string, Shared> cards;
  for (const proto::RecordedProcess& process : report.processes()) {
    const std::vector<std::string> visible =
        absl::StrSplit(process.visible(), ',', absl::SkipEmpty());
    for (int i = 0; i < process.cards_size(); ++i) {
      const proto::RecordedCard& card = process.cards(i);
      if (card.peak_reserved() == 0 || !process.has_card()) continue;
      const auto index = static_cast<size_t>(i);
      Shared& shared = cards[index < visible.size() ? visible[index] : std::to_string(i)];
      ++shared.processes;
      shared.taken = BoundedSum(shared.taken,
                                card.peak_reserved() + card.outside() + process.card().reserve());
      shared.capacity = card.capacity();
    }
  }
  for (const auto& [name, shared] : cards) {
    if (shared.processes < 2) continue;
    const bool fits = shared.taken <= shared.capacity;
    const bool is_whole = EndOf(report) == RunEnd::kWhole;
    text->Add({"",
               StrCat("device ", CleanText(name), " has ", FormatCount(shared.processes),
                      " processes, each recorded as if it were alone; together they need at most ",
                      FormatSize(shared.taken), " including a CUDA context each, ",
                      fits ? is_whole ? "which fits" : "and the whole run may need more"
                           : "MORE THAN THE GPU HAS",
                      "."),
               fits ? Tone::kAnswer : Tone::kBadAnswer});
  }
}

}  // namespace

Text RenderRecord(const proto::RecordReport& report) {
  Text answer;
  std::string& text = answer.text;
  const std::string program = CleanText(absl::StrJoin(report.program(), " "), kMaxProgramLength);
  if (report.processes().empty()) {
    StrAppend(&text, program,
              report.faults().empty()
                  ? ": none of its processes allocated GPU memory, so nothing was recorded.\n"
                  : ": nothing was recorded.\n");
  }
  for (const proto::RecordedProcess& process : report.processes()) {
    answer.Add({CleanText(process.name()),
                StrCat(program, " on ", CardText(process), ": ", Verdict(report, process), "."),
                EndOf(report, process) <= RunEnd::kStopped ? Tone::kAnswer : Tone::kBadAnswer});
    AppendGenerations(process, &text);
    AppendHolding(process, &text);
    AppendDiagnoses(process, &text);
    AppendCards(process, &text);
    AppendServer(process, &text);
    AppendPinned(process, &text);
    AppendReplays(process, &text);
    AddRow(&text, "ran",
           absl::StrFormat("%.1f s, torch %s, Python %s", process.seconds(),
                           CleanText(process.torch()), CleanText(process.python())));
    AddRow(&text, "snapshot", CleanText(process.snapshot()));
    AppendCompilations(process, &text);
    AppendAssumptions(process, &text);
  }
  AppendShared(report, &answer);
  answer.AddAll(ProblemLines(report.faults()));
  AppendNextStep(report, &text);
  if (report.has_explanation()) {
    StrAppend(&text, "\n", RenderExplanationText(report.explanation()));
  }
  return answer;
}

}  // namespace memreplay
