#include <utility>

#include "cli/commands/gpu_card.h"
#include "cuda/cuda_async_allocator.h"
#include "cuda/cuda_context.h"
#include "cuda/cuda_device.h"
#include "cuda/cuda_driver.h"
#include "cuda/verify.h"

namespace memreplay {
namespace {

class CudaSession final : public GpuSession {
 public:
  static absl::StatusOr<std::unique_ptr<GpuSession>> Create(CudaContext& context,
                                                            const GpuSessionOptions& options) {
    std::unique_ptr<CudaSession> session(new CudaSession(context));
    if (options.verify) {
      auto verifier = BlockVerifier::Create(context);
      if (!verifier.ok()) return verifier.status();
      session->verifier_ = *std::move(verifier);
    }
    CudaDeviceOptions device_options;
    device_options.capacity = options.capacity;
    device_options.by = options.by_ballast ? CapacityBy::kBallast : CapacityBy::kLimit;
    device_options.explicit_completion = options.explicit_completion;
    auto device = CudaDevice::Create(context, device_options);
    if (!device.ok()) return device.status();
    session->device_ = *std::move(device);
    if (options.async) {
      auto allocator = CudaAsyncAllocator::Create(*session->device_);
      if (!allocator.ok()) return allocator.status();
      session->async_ = *std::move(allocator);
    }
    return std::unique_ptr<GpuSession>(std::move(session));
  }

  Device& device() override { return *device_; }
  Bytes ballast() const override { return device_->ballast(); }
  absl::Status status() const override { return context_.status(); }

  RunWatch Watch() override {
    RunWatch watch;
    watch.async = std::move(async_);
    watch.free_memory = [this] { return context_.FreeMemory(); };
    if (verifier_ != nullptr) watch.extra = &*verifier_;
    return watch;
  }

  void AddVerification(std::optional<proto::GpuVerification>* counts,
                       std::vector<std::string>* faults) const override {
    if (verifier_ == nullptr) return;
    if (!counts->has_value()) counts->emplace();
    proto::GpuVerification& to = **counts;
    to.set_blocks_filled(to.blocks_filled() + static_cast<int64_t>(verifier_->blocks_filled()));
    to.set_blocks_checked(to.blocks_checked() + static_cast<int64_t>(verifier_->blocks_checked()));
    to.set_bytes_checked(to.bytes_checked() + verifier_->bytes_checked().signed_value());
    to.set_bad_blocks(to.bad_blocks() + static_cast<int64_t>(verifier_->bad_blocks()));
    for (const BadBlock& bad : verifier_->bad()) faults->push_back(bad.Text());
  }

  absl::Status Close() override {
    const absl::Status released = device_->ReleaseEverything();
    return context_.status().ok() ? released : context_.status();
  }

 private:
  explicit CudaSession(CudaContext& context) : context_(context) {}

  CudaContext& context_;
  std::unique_ptr<BlockVerifier> verifier_;
  std::unique_ptr<CudaDevice> device_;
  std::unique_ptr<Allocator> async_;
};

class CudaCardOpened final : public GpuCard {
 public:
  CudaCardOpened(std::unique_ptr<CudaDriver> driver, std::unique_ptr<CudaContext> context)
      : driver_(std::move(driver)), context_(std::move(context)) {}

  proto::GpuCard Describe() override {
    const CudaCard& card = context_->card();
    proto::GpuCard to;
    to.set_name(card.name);
    to.set_driver(driver_->VersionText());
    to.set_index(card.ordinal);
    to.set_total_bytes(card.total.signed_value());
    to.set_free_bytes(context_->FreeMemory().signed_value());
    return to;
  }

  absl::StatusOr<std::unique_ptr<GpuSession>> Start(const GpuSessionOptions& options) override {
    return CudaSession::Create(*context_, options);
  }

  absl::Status MeasureCosts() override {
    const auto device = CudaDevice::Create(*context_, {});
    if (!device.ok()) return device.status();
    return MeasureDriverCosts(**device);
  }

  std::vector<proto::GpuTime> TakeTimes() override {
    std::vector<proto::GpuTime> times;
    for (const auto& [key, row] : context_->log().rows()) {
      proto::GpuTime& to = times.emplace_back();
      to.set_call(std::string(DriverCallName(key.first)));
      to.set_size(key.second.signed_value());
      to.set_count(static_cast<int64_t>(row.calls));
      to.set_refused(static_cast<int64_t>(row.refused));
      to.set_total_ns(row.total_ns);
      to.set_min_ns(row.min_ns);
      to.set_median_ns(row.median_ns());
      to.set_max_ns(row.max_ns);
    }
    context_->log().Clear();
    return times;
  }

 private:
  std::unique_ptr<CudaDriver> driver_;
  std::unique_ptr<CudaContext> context_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<GpuCard>> OpenGpuCard(int ordinal) {
  auto driver = CudaDriver::Open();
  if (!driver.ok()) return driver.status();
  auto context = CudaContext::Create(**driver, ordinal);
  if (!context.ok()) return context.status();
  return std::make_unique<CudaCardOpened>(*std::move(driver), *std::move(context));
}

}  // namespace memreplay
