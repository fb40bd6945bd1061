// A snapshot in miniature, with the keys that each PyTorch release writes.
#pragma once

#include "tests/trace/support/py_value.h"

namespace memreplay {

enum class Release { k20, k21, k22, k23, k25, k28, k29, k210, k213 };
inline constexpr Release kReleases[] = {Release::k20, Release::k21,  Release::k22,
                                        Release::k23, Release::k25,  Release::k28,
                                        Release::k29, Release::k210, Release::k213};

// Device 0 has a 2 MiB segment at 0x7f0000000000 with an allocated block of 512 bytes (300
// requested), one of 1024 that is freed but in use by a stream, and a free rest. Its trace, from
// release 2.1 on, has stacks: segment_alloc, alloc 300, alloc 1000, free_requested 1000, an oom of
// 4 GiB with 1 GiB free (on stream 0x5500), and a snapshot of 1536 active bytes.
Py SampleSnapshot(Release release);
inline constexpr size_t kSampleEvents = 6;
inline constexpr uint64_t kSampleAddress = 0x7f0000000000;

}  // namespace memreplay
