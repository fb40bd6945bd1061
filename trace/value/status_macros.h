#pragma once

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

// Returns from the function what the expression, an absl::Status, says is wrong, if anything.
#define RETURN_IF_ERROR(...)                                                     \
  do {                                                                           \
    if (absl::Status memreplay_status = (__VA_ARGS__); !memreplay_status.ok()) { \
      return memreplay_status;                                                   \
    }                                                                            \
  } while (false)

// `ASSIGN_OR_RETURN(const Trace trace, OpenTrace(path));` defines `trace`, or returns from the
// function what is wrong. What is defined, or assigned to, has no comma outside of parentheses.
#define ASSIGN_OR_RETURN(lhs, ...) \
  MEMREPLAY_ASSIGN_OR_RETURN(MEMREPLAY_JOIN(memreplay_or_, __LINE__), lhs, __VA_ARGS__)

#define MEMREPLAY_ASSIGN_OR_RETURN(status_or, lhs, ...)      \
  auto status_or = __VA_ARGS__;                              \
  if (!status_or.ok()) return std::move(status_or).status(); \
  lhs = *std::move(status_or)
#define MEMREPLAY_JOIN(a, b) MEMREPLAY_JOIN_EXPANDED(a, b)
#define MEMREPLAY_JOIN_EXPANDED(a, b) a##b
