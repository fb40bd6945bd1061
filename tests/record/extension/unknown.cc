// A library that wants an entry point of CUDA's runtime which the imagined card does not have.
extern "C" int cudaSomethingThatNobodyKnows(int);
extern "C" int call() { return cudaSomethingThatNobodyKnows(1); }
