// What a recording does not have of its program's run.
#ifndef MEMREPLAY_REPORT_ASK_UNSEEN_H_
#define MEMREPLAY_REPORT_ASK_UNSEEN_H_

#include "proto/report.pb.h"
#include "trace/schedule/schedule.h"

namespace memreplay {

// Sets unseen where something is: an out of memory after which the program might have gone on, or
// what came before the recording. `inventory`: of DescribeContents(). Nothing, of a program.
// O(events).
void AddUnseen(const Schedule& schedule, const proto::Inventory& inventory,
               proto::DeviceReport* report);

}  // namespace memreplay

#endif  // MEMREPLAY_REPORT_ASK_UNSEEN_H_
