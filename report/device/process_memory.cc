#include <algorithm>
#include <cstdint>
#include <string>

#include "hardware/outside_figures.h"
#include "report/device/device_report.h"
#include "report/words/sizes.h"
#include "trace/value/bounded.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

using ProcessMemory = proto::RecordedCard::ProcessMemory;

void AddPart(std::string what, int64_t low, int64_t bytes, int64_t high, int reports,
             ProcessMemory* memory) {
  ProcessMemory::Part& part = *memory->add_parts();
  part.set_what(std::move(what));
  part.set_low(low);
  part.set_bytes(bytes);
  part.set_high(high);
  part.set_reports(reports);
  memory->set_low(BoundedSum(memory->low(), low));
  memory->set_bytes(BoundedSum(memory->bytes(), bytes));
  memory->set_high(BoundedSum(memory->high(), high));
}

// Adds `count` times a figure.
void AddFigure(std::string what, const OutsideFigure& figure, int64_t count,
               ProcessMemory* memory) {
  const auto times = [count](int64_t bytes) { return count * bytes; };
  AddPart(std::move(what), times(figure.low), times(figure.median), times(figure.high),
          figure.reports, memory);
}

// How many of each there were on a card.
struct ObjectCounts {
  int64_t contexts = 0, communicators = 0, alone = 0, captured = 0;
  int64_t nccl = 0;  // bytes that were assumed for communicators of several ranks
};

ObjectCounts ObjectsOn(const proto::ImaginedCard& card, int device) {
  ObjectCounts counts;
  for (const proto::ImaginedCard::Outside& row : card.outside()) {
    if (row.device() != device) continue;
    const auto add = [&row](const char* object, int64_t* count) {
      constexpr int64_t kMax = 1'000'000'000;  // so that no product of a count overflows
      if (row.object() == object)
        *count = std::clamp<int64_t>(BoundedSum(row.most(), *count), 0, kMax);
    };
    add("CUDA context", &counts.contexts);
    add("NCCL communicator", &counts.communicators);
    add("single-rank NCCL communicator", &counts.alone);
    add("captured kernel", &counts.captured);
    if (row.library() == "NCCL") counts.nccl = BoundedSum(counts.nccl, row.peak());
  }
  return counts;
}

}  // namespace

void AddProcessMemory(proto::RecordedProcess* process) {
  const proto::ImaginedCard& gpu = process->card();
  const int multiprocessors = gpu.multiprocessors();
  if (multiprocessors <= 0 || multiprocessors > 1000 || gpu.pinned().from_gpu() != 0) return;
  for (int i = 0; i < process->cards_size(); ++i) {
    proto::RecordedCard& card = *process->mutable_cards(i);
    const ObjectCounts counts = ObjectsOn(gpu, i);
    if (counts.contexts == 0) continue;
    ProcessMemory& memory = *card.mutable_nvidia_smi();
    const auto recorded = [&memory](const char* what, int64_t bytes) {
      AddPart(what, bytes, bytes, bytes, 0, &memory);
    };
    recorded("reserved by PyTorch", card.peak_reserved());
    AddFigure("context, kernels and handles", kOutsidePerMultiprocessor, multiprocessors, &memory);
    const int64_t others = std::max<int64_t>(card.outside() - counts.nccl, 0);
    if (others > 0) recorded("allocated by other libraries", others);
    if (counts.communicators > 0) {
      // The simulated GPU was charged --nccl for each.
      AddPart(FormatCount(counts.communicators, "NCCL communicator"),
              std::min(counts.communicators * kNcclCommunicator.low, counts.nccl), counts.nccl,
              std::max(counts.communicators * kNcclCommunicator.high, counts.nccl),
              kNcclCommunicator.reports, &memory);
    }
    if (counts.alone > 0) {
      AddFigure(FormatCount(counts.alone, "single-rank NCCL communicator"), kNcclOfOneRank,
                counts.alone, &memory);
    }
    if (counts.captured > 0) {
      AddFigure(StrCat(FormatCount(counts.captured, "kernel"), " in CUDA graphs"), kGraphLaunch,
                counts.captured, &memory);
    }
  }
}

}  // namespace memreplay
