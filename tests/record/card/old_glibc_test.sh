#!/bin/bash
# The core loads wherever torch's wheels do: it needs libc alone, nothing of it newer than glibc
# 2.28, and exports what README.md names and no more.
set -euo pipefail
core=$1
failed=0

newest=$(objdump -T "$core" | grep -o 'GLIBC_[0-9.]*' | sort -uV | tail -1)
if [[ $(printf '%s\nGLIBC_2.28\n' "$newest" | sort -V | tail -1) != GLIBC_2.28 ]]; then
  echo "needs $newest; expected no symbol newer than GLIBC_2.28"
  failed=1
fi
strange=$(readelf -dW "$core" | grep NEEDED | grep -vE '\[(libc\.so\.6|ld-linux-x86-64\.so\.2)\]' || true)
if [[ -n $strange ]]; then
  echo "needs more than libc: $strange"
  failed=1
fi
strange=$(nm -D --defined-only "$core" | awk '{print $NF}' | sed 's/@.*//' |
  grep -vE '^(memreplay_card_[a-z_]+|_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE|_Znwm|_ZdlPvm?)$' || true)
if [[ -n $strange ]]; then
  echo "exports more than it should: $strange"
  failed=1
fi
exit $failed
