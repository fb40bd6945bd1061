// A fake libnvidia-ml.so.1, so that a real one is never asked. PyTorch asks it, in the text of an
// out-of-memory error, which processes use the device: none do.
extern "C" {
int nvmlInit_v2() { return 0; }
int nvmlDeviceGetHandleByPciBusId_v2(const char*, void** handle) {
  *handle = nullptr;
  return 0;
}
int nvmlDeviceGetComputeRunningProcesses(void*, unsigned* count, void*) {
  *count = 0;
  return 0;
}
int nvmlDeviceGetComputeRunningProcesses_v3(void* handle, unsigned* count, void* processes) {
  return nvmlDeviceGetComputeRunningProcesses(handle, count, processes);
}

// Looked up when the library is loaded, never needed here.
#define NOT_SUPPORTED(name) \
  int name() { return 3; }
NOT_SUPPORTED(nvmlDeviceGetGpuFabricInfoV)
NOT_SUPPORTED(nvmlDeviceGetNvLinkRemoteDeviceType)
NOT_SUPPORTED(nvmlDeviceGetNvLinkRemotePciInfo_v2)
NOT_SUPPORTED(nvmlSystemGetCudaDriverVersion_v2)
NOT_SUPPORTED(nvmlSystemGetDriverVersion)
#undef NOT_SUPPORTED
}
