// Makes a Report of which PyTorch release was chosen and why.
#ifndef MEMREPLAY_REPORT_DEVICE_TORCH_CHOICE_H_
#define MEMREPLAY_REPORT_DEVICE_TORCH_CHOICE_H_

#include "proto/report.pb.h"
#include "sim/recording/torch_inference.h"

namespace memreplay {

proto::TorchProfileChoice DescribeChoice(const ProfileChoice& choice);

// Describes the choice for a question without a file: `is_given` says whether the release was
// requested.
proto::TorchProfileChoice DescribeChoice(const TorchProfile& profile, bool is_given);

}  // namespace memreplay

#endif  // MEMREPLAY_REPORT_DEVICE_TORCH_CHOICE_H_
