#include "cuda/verify.h"

#include <algorithm>
#include <array>

#include "absl/strings/str_format.h"
#include "cuda/verify_pattern.h"
#include "trace/value/status_macros.h"
#include "trace/value/strings.h"

// The kernels of verify_kernel.cu, compiled: a compressed fat binary.
extern "C" const unsigned long long memreplay_verify_image[];

namespace memreplay {
namespace {

constexpr unsigned kThreads = 256;                 // of a thread block
constexpr unsigned kBlocksPerMultiprocessor = 16;  // enough to fill its memory pipeline

// Returns a seed that is never 0, so that zeros belong to no block.
uint64_t SeedOf(AllocationId id) { return uint64_t{id} + 1; }

}  // namespace

std::string BadBlock::Text() const {
  std::string text = absl::StrFormat(
      "event %d: block %d (%d bytes at 0x%x) does not hold what it was filled with from byte %d "
      "on: "
      "expected 0x%016x, found 0x%016x",
      event, id, size.value(), address.value(), offset.value(), expected, found);
  if (written_by.has_value()) StrAppend(&text, ", which is written by block ", *written_by);
  return text;
}

absl::StatusOr<std::unique_ptr<BlockVerifier>> BlockVerifier::Create(CudaContext& context) {
  std::unique_ptr<BlockVerifier> verifier(new BlockVerifier(context));
  RETURN_IF_ERROR(verifier->Load());
  return verifier;
}

absl::Status BlockVerifier::Load() {
  const CudaEntryPoints& api = context_.api();
  const CudaDriver& driver = context_.driver();
  if (const CUresult result = api.cuModuleLoadData(&module_, memreplay_verify_image);
      result != CUDA_SUCCESS) {
    module_ = nullptr;
    const absl::Status error =
        driver.Error(result, "cuModuleLoadData", "of the kernels for --verify");
    const CudaCard& card = context_.card();
    return absl::FailedPreconditionError(StrCat(
        ToStd(error.message()), "; they are built by CUDA ", CUDA_VERSION / 1000, ".",
        CUDA_VERSION % 1000 / 10, ", the driver is for CUDA ", driver.VersionText(), ", GPU ",
        card.ordinal, " (", card.name, ") has compute capability ", card.major, ".", card.minor));
  }
  const auto check = [&](CUresult result, std::string_view call, std::string_view detail) {
    return result == CUDA_SUCCESS ? absl::OkStatus() : driver.Error(result, call, detail);
  };
  for (const auto& [name, function] :
       {std::pair(kFillKernel, &fill_), std::pair(kCheckKernel, &check_)}) {
    RETURN_IF_ERROR(check(api.cuModuleGetFunction(function, module_, name), "cuModuleGetFunction",
                          StrCat("of ", name)));
  }
  constexpr std::string_view kResult = "of the result of --verify";
  void* host = nullptr;
  RETURN_IF_ERROR(check(api.cuMemHostAlloc(&host, sizeof(uint64_t), CU_MEMHOSTALLOC_DEVICEMAP),
                        "cuMemHostAlloc", kResult));
  first_bad_ = static_cast<uint64_t*>(host);
  RETURN_IF_ERROR(check(api.cuMemHostGetDevicePointer(&first_bad_on_gpu_, host, 0),
                        "cuMemHostGetDevicePointer", kResult));
  // Launches both kernels now, since drivers load a kernel, and allocate for it, at its first
  // launch.
  for (CUfunction kernel : {fill_, check_}) Launch(kernel, "loading kernels for --verify", Block());
  return context_.status();
}

BlockVerifier::~BlockVerifier() {
  if (first_bad_ != nullptr) context_.api().cuMemFreeHost(const_cast<uint64_t*>(first_bad_));
  if (module_ != nullptr) context_.api().cuModuleUnload(module_);
}

void BlockVerifier::OnEvent(const Event& event) {
  if (event.kind == EventKind::kAlloc && event.id != kNoAllocation) {
    const Block block = {event.address, std::max(event.block_size, event.size), SeedOf(event.id),
                         event.stream};
    live_[event.id] = block;
    highest_id_ = std::max(highest_id_, event.id);
    Fill(event.id, block);
  } else if (event.kind == EventKind::kFree) {
    if (const auto block = live_.find(event.id); block != live_.end()) {
      Check(event.id, block->second);
      live_.erase(block);
    }
  }
  ++next_event_;
}

void BlockVerifier::CheckLive() {
  for (const auto& [id, block] : live_) Check(id, block);
}

bool BlockVerifier::Launch(CUfunction kernel, std::string_view why, const Block& block) {
  if (!context_.status().ok()) return false;
  CUstream const stream = context_.Stream(block.stream);
  if (stream == nullptr) return false;
  uint64_t address = block.address.value();
  uint64_t size = block.size.value();
  uint64_t seed = block.seed;
  std::array<void*, 4> arguments = {&address, &size, &seed, &first_bad_on_gpu_};
  const uint64_t wanted = size / 8 / kThreads + 1;
  const uint64_t most =
      uint64_t{kBlocksPerMultiprocessor} * static_cast<uint64_t>(context_.card().multiprocessors);
  const auto grid = static_cast<unsigned>(std::min(wanted, std::max<uint64_t>(most, 1)));
  const std::string detail = StrCat(why, " ", OfBytesAt(block.size, block.address));
  return context_.Do(DriverCall::kLaunchKernel, Bytes(0), detail, context_.api().cuLaunchKernel,
                     kernel, grid, 1, 1, kThreads, 1, 1, 0, stream, arguments.data(), nullptr) &&
         context_.Do(DriverCall::kStreamSynchronize, Bytes(0), detail,
                     context_.api().cuStreamSynchronize, stream);
}

void BlockVerifier::Fill(AllocationId id, const Block& block) {
  if (Launch(fill_, StrCat("filling block ", id), block)) ++blocks_filled_;
}

void BlockVerifier::Check(AllocationId id, const Block& block) {
  *first_bad_ = kNothingBad;
  if (!Launch(check_, StrCat("checking block ", id), block)) return;
  ++blocks_checked_;
  bytes_checked_ += block.size;
  const uint64_t offset = *first_bad_;
  if (offset == kNothingBad) return;
  ++bad_blocks_;
  if (bad_.size() == kMaxKept) return;

  BadBlock bad = {.id = id,
                  .address = block.address,
                  .size = block.size,
                  .event = next_event_,
                  .offset = Bytes(offset),
                  .written_by = std::nullopt};
  const uint64_t word_at = block.address.value() + offset / 8 * 8;
  const uint64_t length =
      std::min<uint64_t>(8, block.address.value() + block.size.value() - word_at);
  const CUresult read = context_.api().cuMemcpyDtoH(&bad.found, word_at, length);
  context_.Succeeded(read, "cuMemcpyDtoH", OfBytesAt(Bytes(length), Address(word_at)));
  bad.expected = PatternWord(block.seed, word_at);
  if (length < 8) {
    bad.expected &= (uint64_t{1} << (8 * length)) - 1;
  } else if (const uint64_t seed = SeedOfWord(bad.found, word_at);
             seed >= 1 && seed - 1 <= highest_id_) {
    bad.written_by = static_cast<AllocationId>(seed - 1);
  }
  bad_.push_back(bad);
}

}  // namespace memreplay
