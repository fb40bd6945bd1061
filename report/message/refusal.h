// Finds out whether a script ended because memory was too little, by its own words.
#pragma once

#include "proto/record.pb.h"
#include "report/message/log_scan.h"

namespace memreplay {

// Sets the `refusal` of a report and of its processes: the error about GPU memory that ended a
// process or, if the script failed without a request of PyTorch's being refused, the line that it
// printed about that; and explains the first such error of a process. A server measures memory and
// ends itself before any request fails. `printed` was fed what the script printed.
void AddRefusals(LogScan* printed, proto::RecordReport* report);

}  // namespace memreplay
