// The kernels of verify_kernel.cu, compiled: a compressed fat binary.
#pragma once

extern "C" const unsigned long long memreplay_verify_image[];
