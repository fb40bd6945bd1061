# shellcheck shell=bash
# The build with clang, the address and the undefined-behaviour sanitizer: one for the fuzzers
# and for the tests under sanitizers. Sourced in the project's root; sets `sanitized`, the bazel to
# call, and `sanitized_options`, what its commands take. Fails where there is no libFuzzer.
clang=$(command -v clang-16 || command -v clang-14 || true)
if [[ -z $clang ]] || ! echo 'extern "C" int LLVMFuzzerTestOneInput(const char*, unsigned long) { return 0; }' |
  "$clang" -x c++ -fsanitize=fuzzer - -o /dev/null -lstdc++ 2>/dev/null; then
  echo "skipped: clang-16 with libFuzzer is not installed (third_party/setup.sh names the packages)"
  return 77
fi
cache=$(third_party/python/cache.py)/fuzz
# An output folder of its own: another compiler would throw away everybody else's results.
# shellcheck disable=SC2034  # used by the scripts that source this file
sanitized=(bazel --output_base="$cache/bazel-$(echo "$PWD" | md5sum | cut -c1-8)")
# shellcheck disable=SC2034
sanitized_options=(--config=fuzz --repo_env=CC="$clang" --symlink_prefix=/)
# The thread sanitizer instead of both, beside them in the same folder.
# shellcheck disable=SC2034
thread_options=(--config=tsan "${sanitized_options[@]:1}")
# The fuzzer of a target.
binary_of() {
  case $1 in
    commands | fleet_lines | oom_message | read_back | record_folder | recordings | texts) echo fuzz_command ;;
    requests) echo fuzz_allocator ;;
    *) echo fuzz_reader ;;
  esac
}
