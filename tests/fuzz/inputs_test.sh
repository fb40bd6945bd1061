#!/bin/bash
# inputs_test.sh FUZZER TARGET INPUTS DICTIONARY: so many inputs from the corpus of the repository and a
# fixed seed, so that one and the same build meets nearly the same ones each time. Addresses decide the
# order of hash tables, and so what is covered: they are fixed too. Whole commands take a second each, and
# few inputs find little by coverage: theirs are the corpus and INPUTS files of random bytes, which do not
# depend on the build. The mask keeps libFuzzer's and the sanitizers' own reports apart from stderr, which
# a command has for itself while it runs.
set -euo pipefail
fuzzer=$1 target=$2 inputs=$3 dictionary=$4
mkdir "$TEST_TMPDIR/grown"
if [[ $target == recordings ]]; then
  python3 - "$TEST_TMPDIR/grown" "$inputs" <<'END'
import pathlib, random, sys

bytes_of = random.Random(1)
for number in range(int(sys.argv[2])):
    pathlib.Path(sys.argv[1], str(number)).write_bytes(bytes_of.randbytes(bytes_of.randint(6, 125)))
END
  inputs=0
fi
export ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=0 UBSAN_OPTIONS=print_stacktrace=1
MEMREPLAY_FUZZ=$target exec setarch -R "$fuzzer" -runs="$inputs" -seed=1 -reload=0 -timeout=60 -rss_limit_mb=3000 \
  -close_fd_mask=2 -max_len=16384 -dict="$dictionary" -artifact_prefix="$TEST_UNDECLARED_OUTPUTS_DIR/$target-" \
  -print_final_stats=1 \
  "$TEST_TMPDIR/grown" "tests/fuzz/corpus/$target"
