# shellcheck shell=bash
# The one list of what this project needs from Debian 12, and how it is
# installed. Sourced by ./memreplay and ./check; runs nothing by itself.

# To build and run the program.
# shellcheck disable=SC2034  # used by the scripts that source this file
BUILD_PACKAGES=(
  bazel-bootstrap bazel-platforms bazel-rules-java bazel-rules-proto bazel-skylib
  g++
  git
  libabsl-dev
  libprotobuf-dev protobuf-compiler
  libzstd-dev
  node-d3
  python3
  unzip zip
  zlib1g-dev
)

# To build the page for a browser (browser/build).
# shellcheck disable=SC2034
BROWSER_PACKAGES=(
  emscripten
  ninja-build
  patch
)

# To build the program for aarch64 (third_party/aarch64.py).
# shellcheck disable=SC2034
AARCH64_PACKAGES=(
  g++-aarch64-linux-gnu
)

# To test and lint it.
# shellcheck disable=SC2034
CHECK_PACKAGES=(
  "${AARCH64_PACKAGES[@]}"
  chromium chromium-driver
  clang-16 libclang-rt-16-dev
  clang-format-14
  clang-tidy-14
  debootstrap
  "${BROWSER_PACKAGES[@]}"
  firefox-esr
  fish
  libbenchmark-dev
  libgmock-dev
  libgtest-dev
  node-typescript
  python3-pip
  python3-selenium
  python3-venv
  qemu-user-static
  shellcheck
  zsh
)

# locked_apt_get LOG ARGUMENT...: apt-get with these arguments, once no other process holds one of its locks; those of
# the lists and the archives are not among what its option DPkg::Lock::Timeout waits for. Its output is in LOG.
locked_apt_get() {
  local log=$1 until=$((SECONDS + 600)) status holder said=''
  shift
  while :; do
    status=0
    "${as_root[@]}" env LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive apt-get -qq -o Dpkg::Use-Pty=0 "$@" \
      </dev/null >"$log" 2>&1 || status=$?
    ((status)) && grep -q '^E: Could not get lock' "$log" && ((SECONDS < until)) || return "$status"
    holder=$(sed -nE 's/.* (process [0-9]+) \(([^)]*)\).*/\2 of \1/p; T; q' "$log")
    [[ $said == "$holder." ]] ||
      echo "memreplay: waiting for ${holder:-another process} to release apt's lock (at most 10 minutes)" >&2
    said=$holder.
    sleep 1
  done
}

# install_missing PACKAGE...: installs those that are not there, with sudo when
# not root, after saying which. All output is on stderr. Fails, having said
# what to do, where it cannot.
install_missing() {
  local missing=()
  if ! command -v dpkg-query >/dev/null; then
    echo "memreplay: this is not a Debian system; install the equivalents of: $*" >&2
    return 1
  fi
  mapfile -t missing < <(comm -23 <(printf '%s\n' "$@" | sort -u) <(
    dpkg-query -W -f='${db:Status-Status} ${Package}\n' "$@" 2>/dev/null |
      sed -n 's/^installed //p' | sort -u))
  ((${#missing[@]})) || return 0

  local as_root=()
  if [[ $(id -u) != 0 ]]; then
    as_root=(sudo)
    if ! command -v sudo >/dev/null; then
      echo "memreplay: run this as root first: apt-get install ${missing[*]}" >&2
      return 1
    fi
  fi
  echo "memreplay: installing Debian packages${as_root:+ (with sudo)}: ${missing[*]}" >&2
  local log status=0
  log=$(mktemp)
  locked_apt_get "$log" update &&
    locked_apt_get "$log" install -y --no-install-recommends "${missing[@]}" || status=$?
  if ((status)); then
    tail -n 30 "$log" >&2
    echo "memreplay: apt-get could not install: ${missing[*]}" >&2
  fi
  rm -f "$log"
  return "$status"
}

# Bazel wants a place for its caches, and one encoding.
export HOME="${HOME:-$(getent passwd "$(id -u)" | cut -d: -f6)}"
export LC_ALL=C.UTF-8
