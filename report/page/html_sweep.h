// Shows the settings that were searched, as HTML.
#ifndef MEMREPLAY_REPORT_PAGE_HTML_SWEEP_H_
#define MEMREPLAY_REPORT_PAGE_HTML_SWEEP_H_

#include <string>

#include "proto/report.pb.h"

namespace memreplay {

// Returns the best settings, the ranking, and lines to paste; "" if nothing was searched.
std::string SettingsSearch(const proto::DeviceReport& device);

}  // namespace memreplay

#endif  // MEMREPLAY_REPORT_PAGE_HTML_SWEEP_H_
