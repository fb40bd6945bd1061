#include <algorithm>

#include "absl/algorithm/container.h"
#include "absl/strings/str_format.h"
#include "report/table/tables.h"
#include "report/words/names.h"
#include "report/words/sizes.h"
#include "trace/value/bounded.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

using enum Unit;

constexpr int kMaxModuleDepth = 4;
constexpr int64_t kMinShare = 50;  // of the peak, one in so many: smaller modules are left out

// Returns "forward 3", or "the whole run" if no phases are known.
std::string PhaseText(const proto::Categories& categories, const proto::Categories::Phase& phase) {
  if (categories.phases_size() == 1 && phase.name() == "other") return "the whole run";
  const bool has_step = phase.name() != "load" && phase.step() > 0 && categories.peak_step() > 0;
  return has_step ? StrCat(phase.name(), " ", phase.step()) : phase.name();
}

size_t DepthOf(const proto::Categories::Module& module) {
  return static_cast<size_t>(absl::c_count(module.path(), '.'));
}

}  // namespace

Table HeldTable(std::string title, std::string_view heading, const std::vector<HeldRow>& held,
                int64_t whole) {
  Table table{std::move(title),
              {{"live", kSize, "  %10s"},
               {"share", kShare, "", whole},
               {"", kBar, "", whole},
               {std::string(heading)},
               {"allocations", kCount, " in %s allocation"}},
              false,
              14};
  for (const HeldRow& row : held) {
    table.Add({row.bytes, row.bytes, row.bytes, row.who, row.allocations});
  }
  return table;
}

Table PhaseTable(const proto::Categories& categories) {
  Table table{"peaks by phase, requested", {{"phase", kWords, "  %-14s"}}, true};
  std::vector<const BytesByTag*> rows;
  for (const proto::Categories::Phase& phase : categories.phases()) {
    rows.push_back(&phase.bytes_by_category());
    table.Add({Cell(PhaseText(categories, phase), phase.event(), 0)});
  }
  const std::vector<CategoryColumn> columns = CategoryColumns(rows, true);
  const auto add = [&](const std::string& heading, std::string_view narrow, const auto& bytes) {
    table.columns.push_back({heading, kMib, " %8s", 0, true, std::string(narrow)});
    for (size_t i = 0; i < table.rows.size(); ++i) table.rows[i].cells.emplace_back(bytes(i));
  };
  for (const CategoryColumn& column : columns) {
    if (column.sentence.empty()) continue;
    add(column.sentence, column.heading, [&](size_t i) { return column.bytes[i]; });
  }
  add("live", "", [&](size_t i) { return categories.phases(static_cast<int>(i)).live_bytes(); });
  return table;
}

Table ModuleTable(const proto::Categories& categories, size_t most) {
  std::vector<const proto::Categories::Module*> shown;
  std::vector<int64_t> sizes;
  for (const proto::Categories::Module& module : categories.modules()) {
    if (DepthOf(module) >= kMaxModuleDepth ||
        IsLessThanOneIn(kMinShare, module.live_bytes(), categories.peak_bytes())) {
      continue;
    }
    shown.push_back(&module);
    sizes.push_back(module.live_bytes());
  }
  const size_t all = shown.size();
  if (all > most) {
    absl::c_sort(sizes, std::greater<>());
    std::erase_if(shown,
                  [&](const auto* module) { return module->live_bytes() < sizes[most - 1]; });
    if (shown.size() > 2 * most) shown.resize(2 * most);
  }
  Table table{"modules at the peak, with those inside; their own peaks",
              {{"module", kWords, "  %-40s"},
               {"live", kSize, " %10s"},
               {"", kBar, "", categories.peak_bytes()},
               {"its own peak", kSize, " %10s"}}};
  for (const auto* module : shown) {
    table.Add({std::string(2 * DepthOf(*module), ' ') + module->path(), module->live_bytes(),
               module->live_bytes(), module->peak_live_bytes()});
  }
  if (shown.size() < all) table.note = StrCat("and ", all - shown.size(), " smaller ones");
  return table;
}

Table FragmentationTable(const proto::DeviceReport& device) {
  const proto::Fragmentation& f = device.fragmentation();
  std::string title = "fragmentation at the end";
  if (device.mode() != proto::Mode::inspect) {
    title = StrCat("fragmentation ",
                   f.at_event() < 0 ? "before the first event"
                                    : StrCat("at event ", FormatCount(f.at_event())),
                   ", the peak of reserved memory");
  }
  Table table{std::move(title),
              {{"", kWords, "  %-18s"},
               {"bytes", kExactSize, " %s"},
               {"of reserved", kShare, "", device.peak_reserved_bytes()},
               {"what it is", kWords, ""}}};
  const auto add = [&](std::string_view name, int64_t bytes, std::string_view meaning) {
    table.Add({name, bytes, bytes, meaning});
  };
  add("reserved - active", f.reserved_minus_active_bytes(),
      "reserved from the driver but used by no tensor");
  add("inactive split", f.inactive_split_bytes(),
      "of that, next to live blocks: the segment cannot be released");
  add("internal", f.internal_bytes(), "block sizes rounded up beyond the request");
  return table;
}

std::string UnservableText(const proto::Fragmentation& fragmentation) {
  if (fragmentation.unservable_requests() == 0) return "";
  return absl::StrFormat("%.1f %% of the free bytes could not serve any of the last %s",
                         100.0 * fragmentation.unservable_share(),
                         FormatCount(fragmentation.unservable_requests(), "request"));
}

Table FreeTable(const google::protobuf::RepeatedPtrField<proto::Fragmentation::LargestFree>& free,
                int most) {
  Table table{"largest free block of each pool and stream",
              {{"largest", kSize, "  %10s"},
               {"pool"},
               {"stream", kWords, ", %s"},
               {"kind", kWords, ", %s"},
               {"free", kSize, "; %s free"},
               {"blocks", kCount, " in %s block"}},
              false,
              14};
  for (const proto::Fragmentation::LargestFree& each : free) {
    if (std::ssize(table.rows) == most) {
      table.note = StrCat("and ", free.size() - most, " more");
      break;
    }
    table.Add({each.bytes(), PoolName(each.segment_pool_id()), StreamName(each.stream()),
               SegmentTypeName(each.segment_type()), each.free_bytes(), each.free_blocks()});
  }
  return table;
}

Table StreamTable(const proto::Inventory& inventory) {
  Table table{FormatCount(inventory.streams_size(), "stream"),
              {{"stream", kWords, "  %-18s"},
               {"allocations", kCount, " %s alloc"},
               {"total", kSize, " of %s in total"},
               {"segments at the end", kCount, "; at the end %s segment"},
               {"reserved at the end", kSize, " of %s"}}};
  for (const auto& stream : inventory.streams()) {
    table.Add({StreamName(stream.stream()), stream.allocs(), stream.requested_bytes(),
               stream.segments(), stream.reserved_bytes()});
  }
  return table;
}

Table FailureTable(const proto::DeviceReport& device, int most) {
  Table table{"requests that raise an exception",
              {{"", Unit::kWords, "  %-18s"}, {"message", Unit::kWords, " %s"}}};
  for (const proto::RequestFailure& failure : device.failures()) {
    if (std::ssize(table.rows) == most) {
      table.note = StrCat("and ", FormatCount(device.failures_size() - most), " more");
      break;
    }
    table.Add({StrCat("request ", FormatCount(failure.request())), failure.message()});
  }
  return table;
}

Table DiagnosticsTable(const proto::DeviceReport& device) {
  Table table{"diagnostics",
              {{"severity"},
               {"times", Unit::kCount, ", %s time"},
               {"what", Unit::kWords, ": %s"},
               {"first at", Unit::kWords, "; first at %s"}}};
  for (const proto::Diagnostic& diagnostic : device.diagnostics()) {
    std::string where;
    for (const auto& place : diagnostic.places()) {
      StrAppend(&where, where.empty() ? "" : ", ", FormatCount(place.position()),
                place.detail().empty() ? "" : StrCat(" [", place.detail(), "]"));
    }
    table.Add(
        {SeverityName(diagnostic.severity()), diagnostic.count(), diagnostic.sentence(), where});
  }
  return table;
}

}  // namespace memreplay
