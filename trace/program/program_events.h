// The events of a long program, expanded again for each reader.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "trace/program/program_code.h"
#include "trace/program/program_expander.h"
#include "trace/value/event_list.h"
#include "trace/value/tables.h"

namespace memreplay::program {

// The events of a compiled program, which are not kept in memory.
class ProgramEvents final : public EventSource {
 public:
  // Expands the program once. Errors: those of the expansion. Memory: the texts, and at most
  // kMaxStarts copies of what is live.
  static absl::StatusOr<std::shared_ptr<const ProgramEvents>> Make(ProgramCode code);

  uint64_t size() const override { return size_; }
  uint32_t allocation_count() const override { return allocation_count_; }
  const std::vector<Leak>& leaks() const override { return leaks_; }
  std::unique_ptr<Cursor> CursorBefore(uint64_t position) const override;
  uint64_t NearestStart(uint64_t position) const override;

  // Adds the texts and stacks that the events refer to, under the same numbers.
  void AddTexts(StringTable* strings, StackTable* stacks) const;

 private:
  // Saved states of the expansion, for readers that do not start at the beginning. They are rarer
  // the longer the program is and the more is live.
  static constexpr uint64_t kMinBetweenStarts = uint64_t{1} << 16;
  static constexpr size_t kMaxStarts = 64;
  static constexpr size_t kMaxBytes = size_t{32} << 20;
  struct Start {
    uint64_t position;
    ProgramExpander expander;
  };

  explicit ProgramEvents(ProgramCode code) : code_(std::move(code)) {}
  absl::Status Expand();
  const Start& Before(uint64_t position) const;

  const ProgramCode code_;
  StringTable strings_;
  StackTable stacks_;
  std::vector<std::unique_ptr<const Start>> starts_;  // ascending
  uint64_t size_ = 0;
  uint32_t allocation_count_ = 0;
  std::vector<Leak> leaks_;
};

}  // namespace memreplay::program
