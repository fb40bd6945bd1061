// Decides what ran out and why, from what a text says.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "proto/report.pb.h"
#include "report/message/facts.h"

namespace memreplay {

// Sums of the figures in an allocator's message. A sum is absent if the text lacks a part of it.
struct Sums {
  std::optional<Amount> tensors;      // allocated, less what lies free in private pools
  std::optional<Amount> unallocated;  // held by PyTorch, but in no tensor and no private pool
  std::optional<Amount> reserved;
  std::optional<Amount> grantable;  // free on the GPU and within the limit
  std::optional<Amount>
      obtainable;             // grantable + unallocated: the maximum that any packing could give
  std::optional<Amount> own;  // this process in total
  std::optional<int64_t> own_pid;
  Amount others;                  // other processes that the text lists
  std::optional<Amount> outside;  // of this process, but not PyTorch's
  // The part of the GPU that no line of the text lists: other processes that are not visible from
  // here and, if the text has no line for this process, its own context and libraries.
  std::optional<Amount> elsewhere;
};
Sums Add(const Facts& facts);

// What happened according to an error text, and the sums that support it.
struct Judgement {
  proto::Explanation::Verdict verdict = proto::Explanation::no_numbers;
  std::string happened;  // without a full stop
  std::vector<proto::Explanation::Evidence> evidence;
  std::optional<Amount> settings_give;  // the maximum that PYTORCH_CUDA_ALLOC_CONF could give
  // For `serving`: the utilization or the sequence length that would start.
  std::optional<double> utilization;
  std::optional<int64_t> length;
};

Judgement Judge(const Facts& facts, const Sums& sums);

}  // namespace memreplay
