#include <algorithm>
#include <cstdint>
#include <string_view>

#include "absl/algorithm/container.h"
#include "absl/strings/str_format.h"
#include "report/text/render.h"
#include "report/words/answer.h"
#include "report/words/lines.h"
#include "report/words/sizes.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

constexpr int kMaxOoms = 10;
constexpr int kMaxTimes = 24;
constexpr int kMaxRegions = 8;
constexpr int kMaxPoints = 12;

std::string At(const proto::DeviceReport& device, int64_t position) {
  return position < 0
             ? "the start"
             : StrCat(PositionNoun(device.inventory().is_program()), " ", FormatCount(position));
}

void Row(std::string* out, std::string_view label, std::string_view a, std::string_view b,
         std::string_view c) {
  std::string row =
      absl::StrFormat("  %-26s %18s %18s  %s", ToAbsl(label), ToAbsl(a), ToAbsl(b), ToAbsl(c));
  row.erase(row.find_last_not_of(' ') + 1);
  StrAppend(out, row, "\n");
}

void BytesRow(std::string* out, std::string_view label, int64_t predicted, int64_t measured) {
  Row(out, label, FormatSize(predicted), FormatSize(measured),
      predicted == measured ? "equal"
                            : StrCat(FormatSizeChange(measured - predicted), " (",
                                     FormatCount(measured - predicted), " bytes)"));
}

// --- The answer. ---

std::string Answer(const proto::DeviceReport& device) {
  const proto::GpuRun& gpu = device.gpu();
  const int64_t difference =
      gpu.measured().peak_reserved_bytes() - gpu.predicted_peak_reserved_with_addresses_bytes();
  const proto::GpuComparison& decisions = gpu.with_addresses();
  if (decisions.compared() == 0 && gpu.faults().empty()) {
    return "nothing to confirm: the file has no requests, only a final state";
  }
  std::string text = gpu.faults().empty() ? "confirmed: " : "NOT CONFIRMED: ";
  StrAppend(&text, difference == 0 ? "0 bytes" : FormatSizeChange(difference),
            " difference in peak reserved, ", FormatPart(decisions.equal(), decisions.compared()),
            " decisions the same");
  if (gpu.repetitions() > 1 && gpu.faults().empty()) {
    StrAppend(&text, ", in each of ", gpu.repetitions(), " repetitions");
  }
  return text;
}

void GpuTable(const proto::DeviceReport& device, std::string* out) {
  const proto::GpuFigures& a = device.gpu().predicted();
  const proto::GpuFigures& b = device.gpu().measured();
  StrAppend(out, "\n");
  Row(out, "", "predicted", "measured", "difference");
  BytesRow(out, "peak reserved", a.peak_reserved_bytes(), b.peak_reserved_bytes());
  Row(out, "  reached at", At(device, a.peak_reserved_position()),
      At(device, b.peak_reserved_position()),
      a.peak_reserved_position() == b.peak_reserved_position() ? "equal" : "");
  BytesRow(out, "  device memory used there", a.used_at_peak_reserved_bytes(),
           b.used_at_peak_reserved_bytes());
  BytesRow(out, "peak device memory used", a.peak_used_bytes(), b.peak_used_bytes());
  BytesRow(out, "peak allocated", a.peak_allocated_bytes(), b.peak_allocated_bytes());
  const auto count = [&](std::string_view label, int64_t predicted, int64_t measured) {
    Row(out, label, FormatCount(predicted), FormatCount(measured),
        predicted == measured ? "equal" : absl::StrFormat("%+d", measured - predicted));
  };
  count("out of memory", a.ooms_size(), b.ooms_size());
  count("retries after freeing cache", a.alloc_retries(), b.alloc_retries());
  if (a.has_fragmentation() && b.has_fragmentation()) {
    BytesRow(out, "reserved - active there", a.fragmentation().reserved_minus_active_bytes(),
             b.fragmentation().reserved_minus_active_bytes());
    BytesRow(out, "inactive split there", a.fragmentation().inactive_split_bytes(),
             b.fragmentation().inactive_split_bytes());
  }
  if (!device.inventory().is_program() && device.recorded().peak_reserved_bytes() > 0) {
    const int64_t recorded = device.recorded().peak_reserved_bytes();
    AddRow(out, "recorded", "peak reserved ", FormatSizeExactly(recorded),
           recorded == b.peak_reserved_bytes()
               ? ": the same as measured"
               : StrCat("; measured ", FormatSizeChange(b.peak_reserved_bytes() - recorded)));
  }
}

// --- Details. ---

std::string CardText(const proto::GpuCard& card) {
  std::string text =
      StrCat("device ", card.index(), ", ", card.name(), ", driver ", card.driver(), ": ",
             FormatSize(card.total_bytes()), ", ", FormatSize(card.free_bytes()), " free");
  if (card.capacity_bytes() > 0) {
    StrAppend(&text, "; limited to ", FormatSize(card.capacity_bytes()));
    if (card.ballast_bytes() > 0) {
      StrAppend(&text, " by a ballast of ", FormatSize(card.ballast_bytes()));
    }
  }
  return text;
}

void RenderDecisions(const proto::DeviceReport& device, std::string* out) {
  const proto::GpuRun& gpu = device.gpu();
  StrAppend(out, "\n  decisions\n");
  const proto::GpuComparison& before = gpu.as_predicted();
  AddRow(out, "as predicted", FormatPart(before.equal(), before.compared()), " the same");
  if (before.has_first()) {
    AddRow(out, "  they diverge at", At(device, before.first().position()));
    AddRow(out, "  predicted",
           before.first().predicted().empty() ? "nothing more" : before.first().predicted());
    AddRow(out, "  measured",
           before.first().measured().empty() ? "nothing more" : before.first().measured());
  }
  if (gpu.backend() == proto::GpuRun::async) {
    AddRow(out, "",
           "requests only: how the driver's pool grows is up to the driver, and approximated here");
    return;
  }
  const proto::GpuComparison& with = gpu.with_addresses();
  AddRow(out, "with its addresses", FormatPart(with.equal(), with.compared()), " the same");
  if (before.has_first() && !with.has_first()) {
    AddRow(
        out, "  reason",
        "the driver placed segments elsewhere, and addresses decide between blocks of equal size; "
        "nothing else differs");
  }
  const proto::GpuCalls& calls = gpu.calls();
  AddRow(out, "memory calls", FormatCount(calls.measured()), ", ",
         FormatPart(calls.compared(), calls.measured()), " as predicted with its addresses");
  AddRow(out, "driver's overhead",
         calls.largest_used_difference_bytes() == 0
             ? "none: the device memory in use is as predicted after every call"
             : StrCat("the device memory in use differs from the prediction by at most ",
                      FormatSizeChange(calls.largest_used_difference_bytes()), ", at ",
                      At(device, calls.largest_used_difference_position())));
  if (gpu.measured().used_at_end_bytes() != 0) {
    AddRow(out, "at the end", FormatSizeChange(gpu.measured().used_at_end_bytes()),
           " still in use on the device after everything was released: by the driver or by "
           "other processes");
  }
}

void RenderOoms(const proto::DeviceReport& device, std::string* out) {
  const auto& predicted = device.gpu().predicted().ooms();
  const auto& measured = device.gpu().measured().ooms();
  if (predicted.empty() && measured.empty()) return;
  StrAppend(out, "\n  out of memory\n");
  const auto text = [&](const proto::GpuOom& oom) {
    return StrCat(At(device, oom.position()), ", ", FormatSize(oom.size_bytes()), ", ",
                  FormatSize(oom.free_bytes()), " free");
  };
  for (int i = 0; i < std::max(predicted.size(), measured.size()); ++i) {
    if (i == kMaxOoms) {
      AddRow(out, "", "and ", std::max(predicted.size(), measured.size()) - i, " more");
      break;
    }
    AddRow(out, i == 0 ? "predicted" : "", i < predicted.size() ? text(predicted[i]) : "none");
    AddRow(out, i == 0 ? "measured" : "", i < measured.size() ? text(measured[i]) : "none");
  }
}

void RenderTimes(const proto::GpuRun& gpu, std::string* out) {
  Table table{"",
              {{"driver calls", Unit::kWords, "  %-26s"},
               {"size", Unit::kLabel, " %10s"},
               {"count", Unit::kCount, " %8s"},
               {"refused", Unit::kCount, " %8s"},
               {"total", Unit::kLabel, " %10s"},
               {"median", Unit::kLabel, " %10s"},
               {"min", Unit::kLabel, " %10s"},
               {"max", Unit::kLabel, " %10s"}},
              true};
  for (const proto::GpuTime& time : gpu.times()) {
    if (std::ssize(table.rows) == kMaxTimes) {
      table.note = StrCat("and ", gpu.times_size() - kMaxTimes, " more kinds; --json lists all");
      break;
    }
    table.Add({time.call(), time.size() == 0 ? "" : FormatSize(time.size()), time.count(),
               time.refused(), FormatDuration(time.total_ns()), FormatDuration(time.median_ns()),
               FormatDuration(time.min_ns()), FormatDuration(time.max_ns())});
  }
  if (!table.rows.empty()) StrAppend(out, "\n");
  AddTable(table, out);
}

void RenderRepetitions(const proto::GpuRun& gpu, std::string* out) {
  if (gpu.runs().empty()) return;
  const auto [fast, slow] = absl::c_minmax_element(
      gpu.runs(), [](const auto& a, const auto& b) { return a.wall_ns() < b.wall_ns(); });
  AddRow(
      out, "took",
      gpu.runs_size() == 1
          ? StrCat(FormatDuration(fast->wall_ns()), ", ", FormatDuration(fast->driver_ns()),
                   " of it in ", FormatCount(fast->driver_calls(), "driver call"), "")
          : StrCat(FormatDuration(fast->wall_ns()), " to ", FormatDuration(slow->wall_ns()), ", ",
                   FormatDuration(fast->driver_ns()), " to ", FormatDuration(slow->driver_ns()),
                   " of it in driver calls; ", gpu.runs_size(), " repetitions"));
  const auto same =
      absl::c_count_if(gpu.runs(), [](const auto& run) { return run.same_decisions(); });
  if (gpu.runs_size() > 1) {
    AddRow(out, "decisions",
           same == gpu.runs_size()
               ? "the same in all repetitions"
               : StrCat(FormatCount(gpu.runs_size() - same),
                        " of the repetitions differ from the first: the driver placed memory "
                        "elsewhere"));
  }
}

void RenderLayout(const proto::GpuRun& gpu, std::string* out) {
  const proto::GpuLayout& layout = gpu.layout();
  if (layout.segments() + layout.reservations() == 0) return;
  StrAppend(out, "\n  addresses\n");
  AddRow(out, "range",
         absl::StrFormat("0x%x to 0x%x, %s", layout.lowest_address(), layout.highest_address(),
                         FormatSize(layout.highest_address() - layout.lowest_address())));
  if (layout.segments() > 0) {
    AddRow(out, "segments", FormatCount(layout.segments()), ", aligned to ",
           FormatSize(layout.alignment_bytes()), "; ", FormatCount(layout.ascending()),
           " above the previous one, ", FormatCount(layout.reused()), " at an address used before");
  }
  if (layout.reservations() > 0) {
    AddRow(out, "reservations", FormatCount(layout.reservations()));
  }
  for (int i = 0; i < layout.regions_size(); ++i) {
    if (i == kMaxRegions) {
      AddRow(out, "", "and ", FormatCount(layout.regions_held() - i), " more");
      break;
    }
    const proto::GpuRegion& region = layout.regions(i);
    AddRow(out, i == 0 ? "largest use" : "",
           absl::StrFormat("0x%x  number %d, %s%s", region.address(), region.number(),
                           FormatSize(region.size()),
                           region.is_reservation()
                               ? StrCat(" reserved, ", FormatSize(region.mapped()), " of it mapped")
                               : ""));
  }
}

// Renders both timelines, if both make the same events.
void RenderTimeline(const proto::GpuRun& gpu, std::string* out) {
  const auto& predicted = gpu.predicted().timeline();
  const auto& measured = gpu.measured().timeline();
  const int count = std::min(predicted.size(), measured.size());
  if (count == 0) return;
  absl::StrAppendFormat(out, "\n  %-26s %18s %18s\n", "reserved up to event", "predicted",
                        "measured");
  const int step = std::max(1, (count + kMaxPoints - 1) / kMaxPoints);
  for (int i = 0; i < count; i += step) {
    const int end = std::min(i + step, count);
    int64_t a = 0;
    int64_t b = 0;
    for (int j = i; j < end; ++j) {
      a = std::max(a, predicted[j].reserved_bytes());
      b = std::max(b, measured[j].reserved_bytes());
    }
    Row(out, FormatCount(measured[end - 1].event()), FormatSize(a), FormatSize(b), "");
  }
}

}  // namespace

Text RenderGpu(const proto::DeviceReport& device) {
  const proto::GpuRun& gpu = device.gpu();
  Text answer;
  answer.Add({StrCat("device ", device.device(), " on ", gpu.card().name()),
              StrCat(Answer(device), "."),
              device.faults().empty() ? Tone::kAnswer : Tone::kBadAnswer});
  answer.AddAll(ProblemLines(device.faults()));
  std::string& out = answer.text;
  GpuTable(device, &out);
  StrAppend(&out, "\n");
  AddRow(&out, "settings", SettingsName(device.conf()));
  AddRow(&out, "torch", device.torch().release(), " (", device.torch().why(), ")");
  AddRow(&out, "card", CardText(gpu.card()));
  AddRow(&out, "backend", proto::GpuRun::Backend_Name(gpu.backend()),
         gpu.has_verification()
             ? StrCat(", ", FormatCount(gpu.verification().blocks_checked(), "block"), " (",
                      FormatSize(gpu.verification().bytes_checked()), ") filled and checked, ",
                      FormatCount(gpu.verification().bad_blocks()), " bad")
             : "",
         gpu.pace() == proto::GpuRun::recorded ? ", at the recorded pace" : "");
  for (const std::string& note : device.notes()) AddRow(&out, "note", note);
  RenderRepetitions(gpu, &out);
  RenderDecisions(device, &out);
  RenderOoms(device, &out);
  RenderTimes(gpu, &out);
  RenderLayout(gpu, &out);
  RenderTimeline(gpu, &out);
  return answer;
}

}  // namespace memreplay
