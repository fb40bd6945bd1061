// The largest page of the architecture's Linux systems. What is a multiple of it is one of any
// system's pages.
#pragma once

#include <cstdint>

namespace memreplay::card {

#if defined(__aarch64__)
inline constexpr uint64_t kPage = 65536;  // GH200's systems; others have 4 or 16 KiB
#else
inline constexpr uint64_t kPage = 4096;
#endif

}  // namespace memreplay::card
