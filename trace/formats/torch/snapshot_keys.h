// Every text with a meaning in a PyTorch memory snapshot: keys, actions and states, numbered so
// that a reader compares integers.
#ifndef MEMREPLAY_TRACE_FORMATS_TORCH_SNAPSHOT_KEYS_H_
#define MEMREPLAY_TRACE_FORMATS_TORCH_SNAPSHOT_KEYS_H_

#include <cstdint>
#include <string_view>

namespace memreplay {

// Each number is the text's index in a StringTable into which kSnapshotTexts were interned first,
// in order.
enum class SnapshotKey : uint32_t {
  kNone,
  // Trace entries.
  kAction,
  kAddr,
  kDeviceFree,
  kSize,
  kStream,
  kTimeUs,
  kCompileContext,
  kUserMetadata,
  kPoolId,
  kFrames,
  kCategory,
  // Blocks.
  kAddress,
  kRequestedSize,
  kState,
  kHistory,
  kRealSize,
  // Frames.
  kName,
  kFilename,
  kLine,
  kFxNodeOp,
  kFxNodeName,
  kFxNodeTarget,
  kFxOriginalTrace,
  // Annotations.
  kStage,
  kDevice,
  // Segments.
  kTotalSize,
  kAllocatedSize,
  kActiveSize,
  kSegmentType,
  kSegmentPoolId,
  kIsExpandable,
  kBlocks,
  // Top level.
  kSegments,
  kDeviceTraces,
  kAllocatorSettings,
  kExternalAnnotations,
  kTorchVersion,  // added by `memreplay record`
  // Settings.
  kConf,
  kMaxSplitSize,
  kGcThreshold,
  kExpandableSegments,
  kPinnedThreads,
  kReleaseLock,
  kPinnedHostRegister,
  kGraphCaptureReuse,
  kRoundupDivisions,
  // Actions, in the order of kActionKinds (snapshot_records.cc).
  kAlloc,
  kFreeRequested,
  kFreeCompleted,
  kSegmentAlloc,
  kSegmentFree,
  kSegmentMap,
  kSegmentUnmap,
  kOom,
  kSnapshot,
  // States and segment types.
  kActiveAllocated,
  kActivePendingFree,
  kActiveAwaitingFree,
  kInactive,
  kLarge,
  kSmall,
  kCount,
};
inline constexpr uint32_t kSnapshotKeyCount = static_cast<uint32_t>(SnapshotKey::kCount);

inline constexpr std::string_view kSnapshotTexts[] = {
    "",
    "action",
    "addr",
    "device_free",
    "size",
    "stream",
    "time_us",
    "compile_context",
    "user_metadata",
    "pool_id",
    "frames",
    "category",
    "address",
    "requested_size",
    "state",
    "history",
    "real_size",
    "name",
    "filename",
    "line",
    "fx_node_op",
    "fx_node_name",
    "fx_node_target",
    "fx_original_trace",
    "stage",
    "device",
    "total_size",
    "allocated_size",
    "active_size",
    "segment_type",
    "segment_pool_id",
    "is_expandable",
    "blocks",
    "segments",
    "device_traces",
    "allocator_settings",
    "external_annotations",
    "torch_version",
    "PYTORCH_CUDA_ALLOC_CONF",
    "max_split_size",
    "garbage_collection_threshold",
    "expandable_segments",
    "pinned_num_register_threads",
    "release_lock_on_cudamalloc",
    "pinned_use_cuda_host_register",
    "graph_capture_record_stream_reuse",
    "roundup_power2_divisions",
    "alloc",
    "free_requested",
    "free_completed",
    "segment_alloc",
    "segment_free",
    "segment_map",
    "segment_unmap",
    "oom",
    "snapshot",
    "active_allocated",
    "active_pending_free",
    "active_awaiting_free",
    "inactive",
    "large",
    "small",
};
static_assert(sizeof(kSnapshotTexts) / sizeof(kSnapshotTexts[0]) == kSnapshotKeyCount);

}  // namespace memreplay

#endif  // MEMREPLAY_TRACE_FORMATS_TORCH_SNAPSHOT_KEYS_H_
