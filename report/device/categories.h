// Reports what memory is for, and who holds it.
#pragma once

#include <cstddef>
#include <string>

#include "proto/report.pb.h"
#include "report/words/stack_names.h"
#include "report/words/text.h"
#include "sim/category/category_table.h"
#include "sim/category/meanings.h"
#include "sim/study/study.h"
#include "trace/schedule/schedule.h"
#include "trace/value/memory_state.h"
#include "trace/value/trace.h"

namespace memreplay {

// Fills `device->categories`: phases, categories, modules and lines at the peak, or at the moment
// when memory runs out if it does so in the run that `device` already describes. `names` belong to
// the study's trace. O(events).
void AddCategories(const Study& study, StackNames& names, proto::DeviceReport* device);

// Says what `id` is for, and when and where it was made; does nothing if the schedule does not have
// it. `Row` is a message with category, phase and module.
template <typename Row>
void DescribeAllocation(const Meanings& meanings, AllocationId id, Row* row) {
  if (id >= meanings.of.size()) return;
  const Meaning& meaning = meanings.of[id];
  row->set_category(std::string(CategoryName(meaning.category)));
  row->set_phase(std::string(PhaseName(meaning.phase)));
  row->set_module(CleanText(meanings.modules[meaning.module]));
}

// Names the blocks of `segments`, which were made from `state`: stacks, categories, phases and
// modules. O(blocks).
void DescribeBlocks(const Study& study, const MemoryState& state, StackNames& names,
                    google::protobuf::RepeatedPtrField<proto::Segment>* segments);

// --- What was live at a moment, by the stack that requested it. ---

// Selects the stacks to list.
struct HeldOptions {
  size_t top = 10;     // stacks listed
  std::string filter;  // only stacks with this text in a frame; "" for all
};

// Returns what is in the file's state at the end, by the stacks of its blocks. O(blocks).
proto::Held HeldAtEnd(const Trace& trace, size_t device_index, StackNames& names,
                      const HeldOptions& options);

// Returns what was live when the most was requested at once. Simulates nothing. O(requests).
proto::Held HeldAtPeak(const Schedule& schedule, StackNames& names, const HeldOptions& options);

}  // namespace memreplay
