// Which fields of a Statement may be combined.
#pragma once

#include <array>

#include "proto/schedule.pb.h"

namespace memreplay::program {

// A row of field numbers of proto::Statement; 0 is none.
struct Verb {
  int field = 0;
  std::array<int, 1> required = {};
  std::array<int, 7> optional = {};
};

// The first field that is not a verb.
inline constexpr int kFirstDetail = proto::Statement::kBytesFieldNumber;

// The verbs, one row each.
inline constexpr auto kVerbs = [] {
  using S = proto::Statement;
  return std::array<Verb, 29>{{
      {S::kAllocFieldNumber,
       {S::kBytesFieldNumber},
       {S::kTagFieldNumber, S::kSiteFieldNumber, S::kDtypeFieldNumber, S::kShapeFieldNumber,
        S::kSavedFieldNumber, S::kStreamFieldNumber}},
      {S::kTempFieldNumber,
       {S::kBytesFieldNumber},
       {S::kTagFieldNumber, S::kSiteFieldNumber, S::kDtypeFieldNumber, S::kShapeFieldNumber,
        S::kSavedFieldNumber, S::kStreamFieldNumber, S::kBodyFieldNumber}},
      {S::kFreeFieldNumber, {}, {S::kStreamFieldNumber}},
      {S::kMoveFieldNumber, {S::kToFieldNumber}, {}},
      {S::kUseFieldNumber, {S::kStreamFieldNumber}, {}},
      {S::kRetagFieldNumber, {S::kTagFieldNumber}, {}},
      {S::kLetFieldNumber, {}, {S::kValueFieldNumber, S::kFromFieldNumber}},
      {S::kPhaseFieldNumber, {}, {S::kBodyFieldNumber}},
      {S::kRepeatFieldNumber, {}, {S::kIndexFieldNumber, S::kBodyFieldNumber}},
      {S::kForFieldNumber, {S::kRangeFieldNumber}, {S::kBodyFieldNumber}},
      {S::kForeachFieldNumber, {S::kValuesFieldNumber}, {S::kBodyFieldNumber}},
      {S::kIfFieldNumber, {}, {S::kThenFieldNumber, S::kElseFieldNumber}},
      {S::kCallFieldNumber, {}, {S::kWithFieldNumber}},
      {S::kEventFieldNumber, {}, {S::kStreamFieldNumber}},
      {S::kWaitFieldNumber, {}, {S::kStreamFieldNumber}},
      {S::kDoneFieldNumber, {}, {}},
      {S::kEmptyCacheFieldNumber, {}, {}},
      {S::kMarkFieldNumber, {}, {}},
      {S::kResetFieldNumber, {}, {}},
      {S::kConfFieldNumber, {}, {}},
      {S::kFractionFieldNumber, {}, {}},
      {S::kFailNextFieldNumber, {}, {}},
      {S::kOutsideFieldNumber, {S::kBytesFieldNumber}, {S::kSiteFieldNumber}},
      {S::kOutsideFreeFieldNumber, {}, {}},
      {S::kPoolFieldNumber, {}, {S::kBodyFieldNumber}},
      {S::kPoolCreateFieldNumber, {}, {S::kServesOnOomFieldNumber, S::kNoSplitFieldNumber}},
      {S::kPoolForgetFieldNumber, {}, {}},
      {S::kPoolReleaseFieldNumber, {}, {}},
      {S::kRandomFieldNumber, {}, {}},
  }};
}();

}  // namespace memreplay::program
