// Procedures that every schedule program can call: loads that are known to be hard for allocators,
// written in the language itself.
#pragma once

#include <string_view>

namespace memreplay::program {

inline constexpr std::string_view kPatternPrefix = "pattern.";

// Every procedure frees what it allocates.
inline constexpr std::string_view kPatterns = R"program(
  # n sizes, each one unit larger than the one before, all live; `rounds` times.
  procs {
    key: "pattern.sawtooth"
    value {
      args: ["n", "unit", "rounds"]
      body {
        repeat: "rounds"
        body { for: "i" range: ["0", "n"] body { alloc: "sawtooth[i]" bytes: "unit*(i+1)" } }
        body { for: "i" range: ["0", "n"] body { free: "sawtooth[i]" } }
      }
    }
  }
  # One at a time, each larger by `step`: no block that was freed is large enough.
  procs {
    key: "pattern.ramp"
    value {
      args: ["n", "bytes", "step"]
      body { for: "i" range: ["0", "n"] body { temp: "ramp" bytes: "bytes+i*step" } }
    }
  }
  # n blocks of which every other is freed; then half as many of twice the size,
  # which fit into none of the holes.
  procs {
    key: "pattern.checkerboard"
    value {
      args: ["n", "bytes"]
      body { for: "i" range: ["0", "n"] body { alloc: "checker[i]" bytes: "bytes" } }
      body { for: "i" range: ["0", "n", "2"] body { free: "checker[i]" } }
      body { for: "i" range: ["0", "floor(n,2)"] body { alloc: "double[i]" bytes: "2*bytes" } }
      body { for: "i" range: ["0", "floor(n,2)"] body { free: "double[i]" } }
      body { for: "i" range: ["1", "n", "2"] body { free: "checker[i]" } }
    }
  }
  # A byte below, at and above each size at which the allocator changes its mind.
  procs {
    key: "pattern.straddle"
    value {
      body {
        foreach: "edge"
        values: ["512", "1MiB", "2MiB", "10MiB", "20MiB", "200MiB"]
        body {
          for: "off"
          range: ["-1", "2"]
          body { alloc: "straddle[edge][off]" bytes: "edge+off" }
        }
      }
      body {
        foreach: "edge"
        values: ["512", "1MiB", "2MiB", "10MiB", "20MiB", "200MiB"]
        body { for: "off" range: ["-1", "2"] body { free: "straddle[edge][off]" } }
      }
    }
  }
  # n large blocks, freed while a small one next to each survives: then the cache is
  # emptied, and nothing can go.
  procs {
    key: "pattern.pinhole"
    value {
      args: ["n", "bytes", "pin"]
      body {
        for: "i"
        range: ["0", "n"]
        body { alloc: "pinhole[i]" bytes: "bytes" }
        body { alloc: "pin[i]" bytes: "pin" }
      }
      body { for: "i" range: ["0", "n"] body { free: "pinhole[i]" } }
      body { empty_cache: true }
      body { for: "i" range: ["0", "n"] body { free: "pin[i]" } }
    }
  }
)program";

}  // namespace memreplay::program
