// Reports what a recording leaves out of its script's run.
#ifndef MEMREPLAY_REPORT_DEVICE_UNSEEN_H_
#define MEMREPLAY_REPORT_DEVICE_UNSEEN_H_

#include "proto/report.pb.h"
#include "sim/study/study.h"

namespace memreplay {

// Sets `unseen` if something was left out: what would have followed an out of memory or whatever
// else ended the script, or what came before the recording; and whether a device was asked about.
// Does nothing for a written schedule. `inventory` is from DescribeContents(). O(events).
void AddUnseen(const Study& study, const proto::Inventory& inventory, proto::DeviceReport* report);

}  // namespace memreplay

#endif  // MEMREPLAY_REPORT_DEVICE_UNSEEN_H_
