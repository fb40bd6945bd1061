// Opens the fake driver for a test, fresh, and controls it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cuda/cuda_context.h"
#include "cuda/cuda_driver.h"
#include "tests/cuda/fake_driver/control.h"
#include "trace/value/units.h"

namespace memreplay {

class FakeDriver {
 public:
  // These are paths from the workspace, where tests run.
  static constexpr char kLibrary[] = "tests/cuda/fake_driver/libfake_cuda.so";
  static constexpr char kIncomplete[] = "tests/cuda/fake_driver/libincomplete_cuda.so";

  // Opens it with one GPU of `total` bytes, new. Stops the process if it cannot, because then the
  // test is not built right. Only one may exist at a time.
  explicit FakeDriver(Bytes total);

  const CudaDriver& driver() const { return *driver_; }
  // Returns a context on GPU 0, which must be destroyed before another FakeDriver is made.
  std::unique_ptr<CudaContext> NewContext() const;

  // See control.h.
  void Fail(const std::string& entry_point, uint64_t nth, CUresult code) const;
  uint64_t Calls(const std::string& entry_point) const;
  void TakeExternal(Bytes size) const;
  void AliasNextMap() const { alias_next_map_(); }
  void SetGpus(int count) const { set_gpus_(count); }
  FakeDriverHeld Held() const;
  // Returns what is held, in words; "" when nothing is.
  std::string Leaks() const;

 private:
  std::unique_ptr<CudaDriver> driver_;
  Bytes total_;
  decltype(&fake_driver_reset) reset_ = nullptr;
  decltype(&fake_driver_set_gpus) set_gpus_ = nullptr;
  decltype(&fake_driver_fail) fail_ = nullptr;
  decltype(&fake_driver_calls) calls_ = nullptr;
  decltype(&fake_driver_external) external_ = nullptr;
  decltype(&fake_driver_alias_next_map) alias_next_map_ = nullptr;
  decltype(&fake_driver_held) held_ = nullptr;
};

}  // namespace memreplay
