// A compiled schedule program, which ProgramExpander runs. Statements are operations with jumps,
// and names are numbers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trace/program/counter_random.h"
#include "trace/program/expression.h"
#include "trace/value/trace.h"
#include "trace/value/units.h"

namespace memreplay::program {

inline constexpr uint32_t kNone = 0xffffffff;
inline constexpr size_t kMaxIndexes = 4;
inline constexpr uint64_t kDefaultMaxEvents = 10'000'000;
// The maximum that a program can set as its limit of events.
inline constexpr uint64_t kMaxEventLimit = 1'000'000'000;

// A text with values: a sequence of pieces, each a literal followed by an optional expression.
struct TextTemplate {
  struct Piece {
    std::string literal;
    uint32_t value = kNone;  // ProgramCode::expressions
  };
  std::vector<Piece> pieces;
  bool is_constant() const {
    return pieces.empty() || (pieces.size() == 1 && pieces[0].value == kNone);
  }
};

// The name of an allocation, of outside memory or of a CUDA event: "act[mb][l]".
struct HandleTemplate {
  uint32_t name = 0;              // index of "act[][]" in the names
  std::vector<uint32_t> indexes;  // expressions, at most kMaxIndexes
  std::string text;               // as written
};

// The name of an allocation.
struct LabelTemplate {
  uint32_t name = kNone;    // ProgramCode::texts
  uint32_t tag = kNone;     // the same
  uint32_t tensor = kNone;  // the same: dt, sh and saved as members of JSON
};

// A compiled distribution to draw numbers from.
struct DistributionCode {
  enum class Kind : uint8_t { kDraw, kChoice, kMix };
  Kind kind = Kind::kDraw;
  Draw draw;                                         // its limits are below
  uint32_t min = kNone, max = kNone, round = kNone;  // expressions
  std::vector<uint32_t> choices;                     // kChoice: expressions; kMix: distributions
  std::vector<double> weights;                       // of equal length
};

// A compiled random_load statement.
struct RandomLoadCode {
  uint32_t ops = kNone, live_target = kNone, streams = kNone;  // expressions
  uint32_t size = kNone, lifetime = kNone;                     // distributions
  double record_stream_p = 0;
  double empty_cache_p = 0;
  bool keep = false;
  uint32_t label = kNone;
};

// One operation of a compiled program.
struct Operation {
  enum class Kind : uint8_t {
    kAlloc,       // handle, value = bytes, stream, label
    kFree,        // handle, stream or kNone
    kMove,        // handle, other = handle
    kUse,         // handle, stream
    kRetag,       // handle, other = text
    kSet,         // slot = value
    kDraw,        // slot = a draw from distribution `other`
    kPhaseBegin,  // other = text
    kPhaseEnd,    //
    kLoopBegin,   // slot = start (value), stop (value + 1), step (value + 2); to target if none;
                  // label = how many events a turn has at least
    kLoopNext,    // slot; to target unless that was the last
    kPick,        // slot = expression number value + variable other
    kBranch,      // to target if value is zero
    kJump,        // to target
    kCall,        // target; other = ProgramCode::calls
    kReturn,      //
    kEvent,       // handle, stream
    kWait,        // handle, stream
    kDone,        // stream
    kEmptyCache,  //
    kMark,        // other = text
    kResetPeak,   //
    kResetAccumulated,
    kSettings,     // other = text
    kFraction,     // other = text
    kFailNext,     // value
    kOutside,      // handle, value = bytes, other = text
    kOutsideFree,  // handle
    kPoolBegin,    // other = pool
    kPoolEnd,      // other = pool
    kPoolCreate,   // other = pool, value = flags, not an expression
    kPoolForget,   // other = pool
    kPoolRelease,  // other = pool
    kRandom,       // other = ProgramCode::random_loads
  };
  Kind kind = Kind::kReturn;
  uint32_t place = 0;  // ProgramCode::places
  uint32_t target = kNone;
  uint32_t slot = kNone;
  uint32_t handle = kNone;
  uint32_t value = kNone;
  uint32_t stream = kNone;  // expression
  uint32_t other = kNone;
  uint32_t label = kNone;
};

// A compiled call of a procedure.
struct CallCode {
  std::vector<uint32_t> arguments;  // expressions, for the first slots of the procedure
  uint32_t slots = 0;               // number of slots that it needs
};

// A compiled program.
struct ProgramCode {
  std::vector<Operation> operations;
  std::vector<std::string> places;  // "line 3, column 5: program[0].body[2]"
  std::vector<Expression> expressions;
  std::vector<std::string> expression_texts;  // as written; of equal length
  std::vector<TextTemplate> texts;
  std::vector<HandleTemplate> handles;
  std::vector<LabelTemplate> labels;
  std::vector<DistributionCode> distributions;
  std::vector<RandomLoadCode> random_loads;
  std::vector<CallCode> calls;
  uint32_t main_slots = 0;

  // From the head of the program, for the trace.
  std::string format;  // Trace::format
  uint32_t streams = 1;
  std::vector<PoolId> pools;  // Operation::other counts from 0 here, Event::pool from 1
  uint64_t seed = 0;
  uint64_t max_events = kDefaultMaxEvents;
  Bytes context;
  Bytes other_processes;
  std::optional<Bytes> total;
  std::optional<double> fraction;
  std::string conf;
  Completion completion = Completion::kAtOnce;
  std::string header;  // Trace::program_header
};

}  // namespace memreplay::program
