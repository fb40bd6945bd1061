#!/bin/bash
# A test of pages in a browser: page_test.sh TEST.py PAGE...
# Skipped, with a line, where there is no browser.
set -euo pipefail
if ! command -v chromium >/dev/null || ! command -v chromedriver >/dev/null ||
  ! /usr/bin/python3 -c 'import selenium' 2>/dev/null; then
  echo "skipped: needs chromium, chromium-driver and python3-selenium"
  exit 0
fi
export HOME=$TEST_TMPDIR PAGES="${*:2}"
cd "$(dirname "$1")"
exec /usr/bin/python3 -B -m unittest -v "$(basename "$1" .py)"
