#!/bin/bash
# Pages in a browser; skipped, with a line, where there is none.
# Arguments: the program, the script, files to make pages of.
set -euo pipefail
if ! command -v chromium >/dev/null || ! command -v chromedriver >/dev/null ||
  ! /usr/bin/python3 -c 'import selenium' 2>/dev/null; then
  echo "skipped: needs chromium, chromium-driver and python3-selenium"
  exit 0
fi
export HOME=$TEST_TMPDIR MAKE_WORKLOAD=$PWD/tests/bench/make_workload.py
program=$1 script=$2
shift 2
exec /usr/bin/python3 "$script" "$program" "$TEST_TMPDIR" "$@"
