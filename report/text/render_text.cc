#include <map>
#include <string>
#include <string_view>

#include "absl/strings/str_format.h"
#include "report/table/tables.h"
#include "report/text/render.h"
#include "report/words/answer.h"
#include "report/words/lines.h"
#include "report/words/sizes.h"
#include "report/words/verdict.h"
#include "trace/formats/format_names.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

constexpr int kMaxFailures = 10;
constexpr int kMaxFreeRows = 8;

std::string EventText(const proto::Event& event) {
  if (event.action() == "oom") {
    return StrCat("oom ", FormatCount(event.size(), "byte"), ", ", FormatCount(event.addr()),
                  " free, ", StreamName(event.stream()));
  }
  return StrCat(event.action(), " ", absl::StrFormat("0x%x", event.addr()), " ",
                FormatCount(event.size(), "byte"), ", ", StreamName(event.stream()));
}

// --- Sections. ---

void RenderDivergence(const proto::DeviceReport& device, std::string* out) {
  if (!device.fidelity().has_first_divergence()) return;
  const proto::Divergence& divergence = device.fidelity().first_divergence();
  AddRow(out, "first divergence", "event ", FormatCount(divergence.index()));
  AddRow(out, "  recorded",
         divergence.has_recorded() ? EventText(divergence.recorded()) : "nothing more");
  AddRow(out, "  simulated",
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
                           ? ", as recorded"
                           : StrCat("; recorded ", FormatSize(row.recorded), ", change ",
                                    FormatSizeChange(change), PercentChange(change, row.recorded)));
    }
    AddRow(out, row.label, text);
  }
  std::string ooms = FormatCount(device.ooms(), "time");
  if (device.mode() == proto::Mode::what_if && !device.inventory().is_program()) {
    StrAppend(&ooms, "; recorded ", FormatCount(device.recorded().ooms()));
  }
  AddRow(out, "out of memory", ooms);
}

void RenderFragmentation(const proto::DeviceReport& device, std::string* out) {
  if (!device.has_fragmentation()) return;
  const proto::Fragmentation& f = device.fragmentation();
  AddTable(FragmentationTable(device), out);
  if (const std::string text = UnservableText(f); !text.empty()) AddRow(out, "unservable", text);
  int shown = 0;
  for (const auto& free : f.largest_free()) {
    if (shown++ == kMaxFreeRows) {
      AddRow(out, "", "and ", f.largest_free_size() - kMaxFreeRows, " more free lists");
      break;
    }
    AddRow(out, shown == 1 ? "free blocks" : "", PoolName(free.segment_pool_id()), ", ",
           SegmentTypeName(free.segment_type()), ", ", StreamName(free.stream()), ": ",
           FormatSize(free.free_bytes()), " in ", FormatCount(free.free_blocks(), "block"),
           ", largest ", FormatSize(free.bytes()));
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
    AddRow(out, "history", history);
  }
  if (inventory.last_time_us() > inventory.first_time_us()) {
    AddRow(out, "recorded over",
           absl::StrFormat(
               "%.3f s",
               static_cast<double>(inventory.last_time_us() - inventory.first_time_us()) / 1e6));
  }
  if (device.events() > 0) {
    if (!inventory.is_program()) {
      AddRow(out, "peak reserved", FormatSizeExactly(device.recorded().peak_reserved_bytes()));
    }
    AddRow(out, "peak requested", FormatSizeExactly(device.recorded().peak_requested_bytes()));
    AddRow(out, "out of memory", FormatCount(device.recorded().ooms(), "time"));
  }
  if (inventory.has_final_state()) {
    StrAppend(out, "\n  at the end: ", FormatCount(inventory.final_segments(), "segment"), ", ",
              FormatCount(inventory.final_blocks(), "block"), "\n");
    AddRow(out, "reserved", FormatSizeExactly(inventory.final_reserved_bytes()));
    AddRow(out, "active", FormatSizeExactly(inventory.final_active_bytes()));
    AddRow(out, "allocated", FormatSizeExactly(inventory.final_allocated_bytes()));
  }
  if (!inventory.actions().empty()) {
    StrAppend(out, "\n  ", FormatCount(device.events(), PositionNoun(inventory.is_program())),
              "\n");
    const std::map<std::string, int64_t> sorted(inventory.actions().begin(),
                                                inventory.actions().end());
    for (const auto& [action, count] : sorted) AddRow(out, action, FormatCount(count));
  }
  AddTable(StreamTable(inventory), out);
  if (inventory.pools_size() > 0) {
    StrAppend(out, "\n  ", FormatCount(inventory.pools_size(), "pool"), " at the end\n");
    for (const auto& pool : inventory.pools()) {
      AddRow(out, PoolName(pool.segment_pool_id()), FormatCount(pool.segments(), "segment"), " of ",
             FormatSize(pool.reserved_bytes()), ", ", FormatSize(pool.active_bytes()), " active");
    }
  }
}

void RenderDevice(const proto::DeviceReport& device, Text* answer) {
  const bool is_oom = device.mode() == proto::Mode::oom;
  const bool fits = is_oom && device.oom().verdict() == proto::Verdict::none;
  if (fits && device.notes().empty()) return;
  std::string* out = &answer->text;
  StrAppend(out, "\ndevice ", device.device(), "\n");
  const bool inspect = device.mode() == proto::Mode::inspect;
  AddRow(out, "settings",
         inspect && device.conf().empty() ? "default or not recorded" : SettingsText(device));
  if (device.has_torch()) {
    AddRow(out, "torch", device.torch().release(), " (", device.torch().why(), ")");
  }
  if (device.has_control()) {
    if (const std::string card = CardSentence(device.control()); !card.empty()) {
      AddRow(out, "recorded GPU", card);
    }
    AddRow(out, "check", ControlSentence(device.control()));
  }
  for (const std::string& note : device.notes()) AddRow(out, "note", note);
  if (fits) return;
  if (is_oom) return RenderOom(device, answer);
  if (inspect) {
    RenderInventory(device, out);
    if (device.has_held_at_end()) RenderHeld(device.held_at_end(), "live at the end", out);
  } else {
    if (device.mode() == proto::Mode::as_recorded) {
      AddRow(out, "check", FidelitySentence(device));
      if (device.exact_until_event() < device.events()) {
        AddRow(out, "exact up to", "event ", FormatCount(device.exact_until_event()), " of ",
               FormatCount(device.events()), ": ", device.exactness_reason());
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
  AddTable(FailureTable(device, kMaxFailures), out);
  AddTable(DiagnosticsTable(device), out);
}

// Returns whether everything about a device stays together; otherwise the answers about all devices
// come first, and the details of each follow.
bool IsOnePiece(const proto::DeviceReport& device) {
  return (device.has_sweep() && !device.has_page()) || device.has_fits() || device.has_gpu() ||
         AsksAdvice(device);
}

Text OnePiece(const proto::Report& report, const proto::DeviceReport& device) {
  if (device.has_fits()) return RenderFits(device);
  if (device.has_gpu()) return RenderGpu(device);
  if (!AsksAdvice(device)) return RenderSweep(device);
  Text text(RenderAdvice(StrCat(report.file(), ", device ", device.device()), device.advice(),
                         CaveatLines(device)));
  for (const std::string& note : device.notes()) StrAppend(&text.text, "\n", note, "\n");
  return text;
}

}  // namespace

Text RenderText(const proto::Report& report) {
  Text out;
  if (report.devices().empty() || !AsksAdvice(report.devices(0))) {
    out.text = StrCat(report.file(), ": ", FormatTitle(report.format()), ", ",
                      FormatCount(report.devices_size(), "device"), "\n", NothingLine(report));
  }
  for (int i = 0; i < report.devices_size(); ++i) {
    const proto::DeviceReport& device = report.devices(i);
    if (IsOnePiece(device)) {
      StrAppend(&out.text, i == 0 ? "" : "\n");
      out.Append(OnePiece(report, device));
    } else {
      out.AddAll(AnswerLines(device));
    }
  }
  for (const proto::DeviceReport& device : report.devices()) {
    if (device.has_page() && device.has_sweep()) {
      out.Add({StrCat("device ", device.device()),
               StrCat(SweepSentence(device.sweep(), device.unseen()), "."), Tone::kAnswer});
    } else if (!device.has_page() && !IsOnePiece(device)) {
      RenderDevice(device, &out);
    }
  }
  if (report.has_written()) StrAppend(&out.text, "  page: ", report.written().path(), "\n");
  return out;
}

}  // namespace memreplay
