// The files that a page consists of, as embed.py makes them constants.
#pragma once

#include <string_view>

namespace memreplay {

extern const std::string_view kStyle;
extern const std::string_view kChartLibrary;         // d3
extern const std::string_view kChartLibraryLicence;  // to be shown with it
extern const std::string_view kScript;

// "'sha256-...'" of the three, for a content security policy.
extern const std::string_view kStyleHash;
extern const std::string_view kChartLibraryHash;
extern const std::string_view kScriptHash;

}  // namespace memreplay
