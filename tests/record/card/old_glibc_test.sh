#!/bin/bash
# The libraries load wherever torch's wheels do: each needs libc alone, nothing of it newer than
# glibc 2.28, and exports what its names below say and no more.
set -euo pipefail
failed=0
hook=_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE

check() {
  local library=$1 names=$2 newest strange
  newest=$(objdump -T "$library" | grep -o 'GLIBC_[0-9.]*' | sort -uV | tail -1)
  if [[ $(printf '%s\nGLIBC_2.28\n' "$newest" | sort -V | tail -1) != GLIBC_2.28 ]]; then
    echo "$library needs $newest; expected no symbol newer than GLIBC_2.28"
    failed=1
  fi
  strange=$(readelf -dW "$library" | grep NEEDED | grep -vE '\[(libc\.so\.6|ld-linux-x86-64\.so\.2)\]' || true)
  if [[ -n $strange ]]; then
    echo "$library needs more than libc: $strange"
    failed=1
  fi
  strange=$(nm -D --defined-only "$library" | awk '{print $NF}' | sed 's/@.*//' | grep -vE "^($hook|$names)$" || true)
  if [[ -n $strange ]]; then
    echo "$library exports more than it should: $strange"
    failed=1
  fi
}

check "$1" 'memreplay_card_[a-z_]+|_Znwm|_ZdlPvm?'
check "$2" 'memreplay_pass_summary|cuda(Malloc|Free)[A-Za-z]*|cuMem[A-Za-z0-9_]+|cuGetProcAddress(_v2)?|dlsym'
exit $failed
