// A library that needs an entry point of CUDA's runtime which the simulated GPU does not have.
extern "C" int cudaSomethingThatNobodyKnows(int);
extern "C" int call() { return cudaSomethingThatNobodyKnows(1); }
