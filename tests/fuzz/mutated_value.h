// Values as Python has them, in which something is as no program writes it.
#ifndef MEMREPLAY_TESTS_FUZZ_MUTATED_VALUE_H_
#define MEMREPLAY_TESTS_FUZZ_MUTATED_VALUE_H_

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "tests/trace/support/py_value.h"

namespace memreplay::fuzz {

// Returns `value` with one to four changes: a number at the edges of what 64 bits hold, another
// type, another value of it in its place, a key or an element that is missing, there twice or many
// times, or elsewhere. `below` returns a choice, a number below its argument.
Py MutateValue(Py value, absl::FunctionRef<uint64_t(uint64_t)> below);

}  // namespace memreplay::fuzz

#endif  // MEMREPLAY_TESTS_FUZZ_MUTATED_VALUE_H_
