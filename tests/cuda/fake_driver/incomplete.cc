// A library that has only the beginning of a driver, as a too old one.
extern "C" int cuInit(unsigned) { return 0; }
