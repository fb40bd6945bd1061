// Reports what memory is for.
#pragma once

#include <string>

#include "proto/report.pb.h"
#include "report/words/stack_names.h"
#include "report/words/text.h"
#include "sim/category/category_table.h"
#include "sim/category/meanings.h"
#include "sim/study/study.h"
#include "trace/value/memory_state.h"

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

}  // namespace memreplay
