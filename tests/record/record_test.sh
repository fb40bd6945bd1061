#!/bin/bash
# Arguments: the script and its own.
set -euo pipefail
export XDG_CACHE_HOME=${TEST_TMPDIR:-/tmp}/cache
exec /usr/bin/python3 "$@"
