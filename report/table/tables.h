// Makes the tables that a terminal and a page show.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "proto/report.pb.h"
#include "report/table/table.h"

namespace memreplay {

// --- What holds memory. ---

// A row of what is live. `who` may be a link or the markup of a page.
struct HeldRow {
  int64_t bytes;
  Cell who;
  Cell allocations = "";  // "": unknown
};
// Returns who holds memory, with the share of `whole`; `heading` is that of `who`.
Table HeldTable(std::string title, std::string_view heading, const std::vector<HeldRow>& held,
                int64_t whole);

// Returns the peak of each phase by category.
Table PhaseTable(const proto::Categories& categories);

// Returns the modules at the peak with what is inside of them, about `most` of the largest, in the
// order of the tree.
Table ModuleTable(const proto::Categories& categories, size_t most);

// Returns the memory that no tensor uses.
Table FragmentationTable(const proto::DeviceReport& device);
// Returns what of it serves no request, as a sentence without a full stop; "" if that is unknown.
std::string UnservableText(const proto::Fragmentation& fragmentation);

// Returns the largest free block of each pool and stream, at most `most`.
Table FreeTable(const google::protobuf::RepeatedPtrField<proto::Fragmentation::LargestFree>& free,
                int most);

Table StreamTable(const proto::Inventory& inventory);

// --- Why memory ran out. ---

Table UseTable(const proto::MemoryUse& use);

// Returns what each simulated change gives.
Table HelpTable(const proto::OutOfMemory& oom);

// Returns the cheapest changes of the script that would have served the request, and what to write.
// Whether there is memory to spare is unknown if what would have followed is.
Table ServingTable(const proto::Advice& advice);

// Returns the segments that live tensors keep, at most `most`.
Table PinnedTable(const proto::OutOfMemory& oom, int most);

// --- Settings. ---

// Returns "max_split_size_mb:64  (current)".
std::string ConfCell(const std::string& conf, double memory_fraction, bool is_current);

// Returns the best settings that were tried, as many as are to be shown, and the current ones.
Table SweepTable(const proto::Sweep& sweep);

// --- The file. ---

// Returns the requests that raise an exception, at most `most`.
Table FailureTable(const proto::DeviceReport& device, int most);

Table DiagnosticsTable(const proto::DeviceReport& device);

}  // namespace memreplay
