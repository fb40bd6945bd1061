#include "report/text/render_text.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_format.h"
#include "report/text/render_advice.h"
#include "report/text/render_categories.h"
#include "report/text/render_gpu.h"
#include "report/text/render_held.h"
#include "report/text/render_loop.h"
#include "report/text/render_oom.h"
#include "report/text/render_sweep.h"
#include "report/words/answer.h"
#include "report/words/lines.h"
#include "report/words/memory_use.h"
#include "report/words/sizes.h"
#include "report/words/sweep_words.h"
#include "report/words/verdict.h"
#include "trace/formats/format_names.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

constexpr int kMaxFailures = 10;
constexpr int kMaxFreeLists = 8;

std::string EventText(const proto::Event& event) {
  if (event.action() == "oom") {
    return StrCat("oom ", FormatCount(event.size(), "byte"), ", ", FormatCount(event.addr()),
                  " free, ", StreamName(event.stream()));
  }
  return StrCat(event.action(), " ", absl::StrFormat("0x%x", event.addr()), " ",
                FormatCount(event.size(), "byte"), ", ", StreamName(event.stream()));
}

// --- The answer: one sentence per device, and what is wrong. ---

void Answer(const proto::DeviceReport& device, std::string* out) {
  StrAppend(out, "device ", device.device(), ": ", DiagnosisLine(device), "\n");
  if (const std::string warning = ControlWarning(device.control()); !warning.empty()) {
    StrAppend(out, "  WARNING: ", warning, ".\n");
  }
  for (const std::string& fault : device.faults()) StrAppend(out, "  PROBLEM: ", fault, ".\n");
  StrAppend(out, UnseenLines(device.unseen()));
}

// --- Sections. ---

void RenderDivergence(const proto::DeviceReport& device, std::string* out) {
  if (!device.fidelity().has_first_divergence()) return;
  const proto::Divergence& divergence = device.fidelity().first_divergence();
  Line(out, "first divergence", StrCat("event ", FormatCount(divergence.index())));
  Line(out, "  recorded",
       divergence.has_recorded() ? EventText(divergence.recorded()) : "nothing more");
  Line(out, "  simulated",
       divergence.has_simulated() ? EventText(divergence.simulated()) : "nothing more");
}

void RenderPeaks(const proto::DeviceReport& device, std::string* out) {
  const struct {
    std::string_view label;
    int64_t value;
    int64_t recorded;
  } kRows[] = {
      {"peak reserved", device.peak_reserved_bytes(), device.recorded().peak_reserved_bytes()},
      {"peak active", device.peak_active_bytes(), 0},
      {"peak allocated", device.peak_allocated_bytes(), 0},
      {"peak requested", device.peak_requested_bytes(), device.recorded().peak_requested_bytes()},
  };
  for (const auto& row : kRows) {
    std::string text = FormatSizeExactly(row.value);
    if (device.mode() == proto::Mode::what_if && row.recorded > 0) {
      const int64_t change = row.value - row.recorded;
      StrAppend(&text, change == 0
                           ? std::string(", as recorded")
                           : StrCat("; recorded ", FormatSize(row.recorded), ", change ",
                                    FormatSizeChange(change), PercentChange(change, row.recorded)));
    }
    Line(out, row.label, text);
  }
  std::string ooms = FormatCount(device.ooms(), "time");
  if (device.mode() == proto::Mode::what_if && !device.inventory().is_program()) {
    StrAppend(&ooms, "; recorded ", FormatCount(device.recorded().ooms()));
  }
  Line(out, "out of memory", ooms);
}

void RenderFragmentation(const proto::DeviceReport& device, std::string* out) {
  if (!device.has_fragmentation()) return;
  const proto::Fragmentation& f = device.fragmentation();
  StrAppend(out, device.mode() == proto::Mode::inspect
                     ? std::string("\n  fragmentation at the end\n")
                     : StrCat("\n  fragmentation ",
                              f.at_event() < 0 ? std::string("before the first event")
                                               : StrCat("at event ", FormatCount(f.at_event())),
                              ", the peak of reserved memory\n"));
  Line(out, "reserved - active", FormatSizeExactly(f.reserved_minus_active_bytes()));
  Line(out, "inactive split", FormatSizeExactly(f.inactive_split_bytes()));
  Line(out, "internal", FormatSizeExactly(f.internal_bytes()));
  if (f.unservable_requests() > 0) {
    Line(out, "unservable",
         absl::StrFormat("%.1f %% of the free bytes could not serve any of the last %s",
                         100.0 * f.unservable_share(),
                         FormatCount(f.unservable_requests(), "request")));
  }
  int shown = 0;
  for (const auto& free : f.largest_free()) {
    if (shown++ == kMaxFreeLists) {
      Line(out, "", StrCat("and ", f.largest_free_size() - kMaxFreeLists, " more free lists"));
      break;
    }
    Line(
        out, shown == 1 ? "free blocks" : "",
        StrCat(PoolName(free.segment_pool_id()), ", ", proto::SegmentType_Name(free.segment_type()),
               ", ", StreamName(free.stream()), ": ", FormatSize(free.free_bytes()), " in ",
               FormatCount(free.free_blocks(), "block"), ", largest ", FormatSize(free.bytes())));
  }
}

void RenderInventory(const proto::DeviceReport& device, std::string* out) {
  const proto::Inventory& inventory = device.inventory();
  if (!inventory.is_program()) {
    std::string history;
    if (device.events() == 0) {
      history = "none recorded; only the final state is known";
    } else if (inventory.is_cold()) {
      history = "complete: recording began before the first allocation";
    } else {
      history =
          StrCat("partial: ", FormatCount(inventory.start_allocations(), "allocation"), " (",
                 FormatSize(inventory.start_requested_bytes()), ") live and ",
                 FormatSize(inventory.start_reserved_bytes()), " reserved when recording began");
    }
    Line(out, "history", history);
  }
  if (inventory.last_time_us() > inventory.first_time_us()) {
    Line(out, "recorded over",
         absl::StrFormat(
             "%.3f s",
             static_cast<double>(inventory.last_time_us() - inventory.first_time_us()) / 1e6));
  }
  if (device.events() > 0) {
    if (!inventory.is_program()) {
      Line(out, "peak reserved", FormatSizeExactly(device.recorded().peak_reserved_bytes()));
    }
    Line(out, "peak requested", FormatSizeExactly(device.recorded().peak_requested_bytes()));
    Line(out, "out of memory", FormatCount(device.recorded().ooms(), "time"));
  }
  if (inventory.has_final_state()) {
    StrAppend(out, "\n  at the end: ", FormatCount(inventory.final_segments(), "segment"), ", ",
              FormatCount(inventory.final_blocks(), "block"), "\n");
    Line(out, "reserved", FormatSizeExactly(inventory.final_reserved_bytes()));
    Line(out, "active", FormatSizeExactly(inventory.final_active_bytes()));
    Line(out, "allocated", FormatSizeExactly(inventory.final_allocated_bytes()));
  }
  if (!inventory.actions().empty()) {
    StrAppend(out, "\n  ",
              FormatCount(device.events(), inventory.is_program() ? "request" : "event"), "\n");
    const std::map<std::string, int64_t> sorted(inventory.actions().begin(),
                                                inventory.actions().end());
    for (const auto& [action, count] : sorted) Line(out, action, FormatCount(count));
  }
  if (inventory.streams_size() > 0) {
    StrAppend(out, "\n  ", FormatCount(inventory.streams_size(), "stream"), "\n");
    for (const auto& stream : inventory.streams()) {
      Line(out, StreamName(stream.stream()),
           StrCat(FormatCount(stream.allocs(), "alloc"), " of ",
                  FormatSize(stream.requested_bytes()), " in total; at the end ",
                  FormatCount(stream.segments(), "segment"), " of ",
                  FormatSize(stream.reserved_bytes())));
    }
  }
  if (inventory.pools_size() > 0) {
    StrAppend(out, "\n  ", FormatCount(inventory.pools_size(), "pool"), " at the end\n");
    for (const auto& pool : inventory.pools()) {
      Line(
          out, PoolName(pool.segment_pool_id()),
          StrCat(FormatCount(pool.segments(), "segment"), " of ", FormatSize(pool.reserved_bytes()),
                 ", ", FormatSize(pool.active_bytes()), " active"));
    }
  }
}

void RenderDiagnostics(const proto::DeviceReport& device, std::string* out) {
  if (device.diagnostics_size() > 0) StrAppend(out, "\n  diagnostics\n");
  for (const proto::Diagnostic& diagnostic : device.diagnostics()) {
    std::string where;
    for (const auto& place : diagnostic.places()) {
      StrAppend(&where, where.empty() ? "first at " : ", ", FormatCount(place.position()));
      if (!place.detail().empty()) StrAppend(&where, " [", place.detail(), "]");
    }
    StrAppend(out, "  ", SeverityName(diagnostic.severity()), ", ",
              FormatCount(diagnostic.count(), "time"), ": ", diagnostic.sentence(),
              where.empty() ? "" : StrCat("; ", where), "\n");
  }
}

void RenderDevice(const proto::DeviceReport& device, std::string* out) {
  StrAppend(out, "\ndevice ", device.device(), "\n");
  const bool inspect = device.mode() == proto::Mode::inspect;
  Line(out, "settings",
       inspect && device.conf().empty() ? "default or not recorded" : SettingsText(device));
  if (device.has_torch()) {
    Line(out, "torch", StrCat(device.torch().release(), " (", device.torch().why(), ")"));
  }
  if (device.has_control()) {
    if (const std::string card = CardSentence(device.control()); !card.empty()) {
      Line(out, "recorded GPU", card);
    }
    Line(out, "check", ControlSentence(device.control()));
  }
  for (const std::string& note : device.notes()) Line(out, "note", note);
  if (inspect) {
    RenderInventory(device, out);
    if (device.has_held_at_end()) RenderHeld(device.held_at_end(), "live at the end", out);
  } else {
    if (device.mode() == proto::Mode::as_recorded) {
      Line(out, "check", FidelitySentence(device));
      if (device.exact_until_event() < device.events()) {
        Line(out, "exact up to",
             StrCat("event ", FormatCount(device.exact_until_event()), " of ",
                    FormatCount(device.events()), ": ", device.exactness_reason()));
      }
    }
    RenderDivergence(device, out);
    RenderPeaks(device, out);
    StrAppend(out, RenderTimelineText(device));
  }
  RenderFragmentation(device, out);
  if (inspect && device.has_loop()) {
    StrAppend(out, RenderCategories(device.categories()), RenderLoopText(device));
  }
  if (device.failures_size() > 0) StrAppend(out, "\n  requests that raise an exception\n");
  int shown = 0;
  for (const proto::RequestFailure& failure : device.failures()) {
    if (shown++ == kMaxFailures) {
      StrAppend(out, "  and ", device.failures_size() - kMaxFailures, " more\n");
      break;
    }
    Line(out, StrCat("request ", FormatCount(failure.request())), failure.message());
  }
  RenderDiagnostics(device, out);
}

}  // namespace

std::string RenderText(const proto::Report& report) {
  if (report.command() == "oom") return RenderOomText(report);
  std::string out = StrCat(report.file(), ": ", FormatTitle(report.format()), ", ",
                           FormatCount(report.devices_size(), "device"), "\n", NothingLine(report));
  if (report.command() == "sweep" || report.command() == "fit") {
    for (int i = 0; i < report.devices_size(); ++i) {
      const proto::DeviceReport& device = report.devices(i);
      StrAppend(&out, i == 0 ? "" : "\n",
                device.has_fits() ? RenderFits(device) : RenderSweep(device));
    }
    return out;
  }
  if (report.command() == "advise") {
    out.clear();
    for (int i = 0; i < report.devices_size(); ++i) {
      const proto::DeviceReport& device = report.devices(i);
      StrAppend(&out, i == 0 ? "" : "\n",
                RenderAdvice(StrCat(report.file(), ", device ", device.device()), device.advice()));
      if (const std::string warning = ControlWarning(device.control()); !warning.empty()) {
        StrAppend(&out, "WARNING: ", warning, ".\n");
      }
      StrAppend(&out, UnseenLines(device.unseen()));
    }
    return out;
  }
  if (report.command() == "gpu") {
    for (int i = 0; i < report.devices_size(); ++i) {
      StrAppend(&out, i == 0 ? "" : "\n", RenderGpu(report.devices(i)));
    }
    return out;
  }
  for (const proto::DeviceReport& device : report.devices()) Answer(device, &out);
  if (report.command() == "report") {
    for (const proto::DeviceReport& device : report.devices()) {
      if (device.has_sweep()) {
        StrAppend(&out, "device ", device.device(), ": ",
                  SweepSentence(device.sweep(), device.unseen()), ".\n");
      }
    }
    if (report.has_written()) StrAppend(&out, "  page: ", report.written().path(), "\n");
    return out;
  }
  for (const proto::DeviceReport& device : report.devices()) RenderDevice(device, &out);
  return out;
}

}  // namespace memreplay
