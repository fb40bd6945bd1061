// What ran out and why, of what a text says.
#ifndef MEMREPLAY_REPORT_MESSAGE_JUDGE_H_
#define MEMREPLAY_REPORT_MESSAGE_JUDGE_H_

#include <optional>
#include <string>
#include <vector>

#include "proto/report.pb.h"
#include "report/message/facts.h"

namespace memreplay {

// Sums of what an allocator's message has. Absent: the text lacks a part of it.
struct Sums {
  std::optional<Amount> unallocated;  // held by PyTorch, in no tensor and no private pool
  std::optional<Amount> reserved;
  std::optional<Amount> grantable;  // free on the card and within the limit
  std::optional<Amount>
      obtainable;             // grantable + unallocated: the most that any packing could give
  std::optional<Amount> own;  // this process, all told
  std::optional<int64_t> own_pid;
  Amount others;                  // other processes that the text lists
  std::optional<Amount> outside;  // this process, not PyTorch's
  // Of the card, in no line of the text: other processes that cannot be seen from here and, where
  // the text has no line for this process, its own context and libraries.
  std::optional<Amount> elsewhere;
};
Sums Add(const Facts& facts);

// What happened by an error text, and the sums that it stands on.
struct Judgement {
  proto::Explanation::Verdict verdict = proto::Explanation::no_numbers;
  std::string happened;  // without a full stop
  std::vector<proto::Explanation::Evidence> evidence;
  std::optional<Amount> settings_give;  // the most that PYTORCH_CUDA_ALLOC_CONF could
  // Of `serving`: the utilization or the sequence length that would start.
  std::optional<double> utilization;
  std::optional<int64_t> length;
};

Judgement Judge(const Facts& facts, const Sums& sums);

}  // namespace memreplay

#endif  // MEMREPLAY_REPORT_MESSAGE_JUDGE_H_
