#!/bin/bash
# Runs compare_test.py on what Bazel built.
exec python3 tests/gpu/compare_test.py cli/memreplay tests/cuda/fake_driver/libfake_cuda.so tests/data/snapshots/torch-2.15
