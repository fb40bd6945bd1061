#include "record/card/control.h"

#include <string>

#include "record/card/api/nccl.h"
#include "record/card/device/copies.h"
#include "record/card/device/device.h"
#include "record/card/device/entry.h"
#include "record/card/hooks/pinned_hook.h"
#include "record/card/hooks/tensor_objects.h"
#include "record/card/hooks/torch_overrides.h"
#include "record/card/model/json.h"
#include "record/card/prepare.h"

namespace memreplay::card {
namespace {

// Returns text that stays valid until this thread's next call; never destroyed.
const char* Keep(const std::string& text) {
  thread_local std::string* kept = nullptr;
  if (kept == nullptr) kept = new std::string;
  *kept = text;
  return kept->c_str();
}

std::string& PrepareError() {
  static std::string* error = new std::string;
  return *error;
}

void WritePinned(const Device& d, Json* json) {
  const Pinned& pinned = d.pinned;
  json->Key("pinned").Open('{').Key("peak").Value(pinned.peak());
  json->Key("blocks").Value(pinned.peak_blocks()).Key("refused").Value(d.refused_pins);
  if (d.settings.host_memory < kMaxHostBytes) json->Key("limit").Value(d.settings.host_memory);
  json->Key("from_gpu").Value(uint64_t{d.shares_host_memory() ? 1U : 0U});
  json->Key("lines").Open('[');
  for (size_t i = 0; i < pinned.peak_lines().size(); ++i) {
    const Pinned::Line& line = pinned.peak_lines()[i];
    if (line.blocks == 0) continue;
    json->Open('{').Key("line").Value(i).Key("requested").Value(line.requested);
    json->Key("held").Value(line.held).Key("blocks").Value(line.blocks).Close('}');
  }
  json->Close(']');
  if (pinned.follows() && pinned.models()[0].reserves()) {
    json->Key("unmodelled").Value(std::string(ConfKeyName(HostAllocatorModel::kReserve)));
  } else if (pinned.follows() && pinned.models()[0].peak() == pinned.torch_peak()) {
    // The model is worth asking only if it has what PyTorch's allocator had.
    json->Key("unrounded_peak")
        .Value(pinned.peak() - pinned.torch_peak() + pinned.models()[1].peak());
  }
  json->Close('}');
}

}  // namespace
}  // namespace memreplay::card

using namespace memreplay::card;  // NOLINT: what follows is C

int memreplay_card_prepare(const char* torch_folder, const char* out_folder) {
  std::string error;
  const bool ok = Prepare(torch_folder, out_folder, &error);
  PrepareError() = error;
  return ok ? 0 : -1;
}

const char* memreplay_card_error() {
  return Keep(PrepareError().empty() ? TheDevice().settings.error : PrepareError());
}

const char* memreplay_card_summary() {
  Device& d = TheDevice();
  const Settings& settings = d.settings;
  Json json;
  json.Open('{');
  json.Key("card").Value(settings.card.has_value() ? settings.card->name : "");
  json.Key("title").Value(settings.card.has_value() ? settings.card->title : "");
  json.Key("multiprocessors")
      .Value(static_cast<uint64_t>(settings.card.has_value() ? settings.card->multiprocessors : 0));
  json.Key("capacity").Value(settings.capacity).Key("reserve").Value(settings.reserve);
  json.Key("reserve_reason").Value(settings.reserve_reason);
  json.Key("completion")
      .Value(settings.completion == Streams::Completion::kLagging ? "lagging" : "at-once");
  json.Key("addresses")
      .Value(settings.addresses == memreplay::AddressOrder::kUpwards ? "up" : "down");
  json.Key("launches").Value(d.launches.load());
  {
    const std::lock_guard<std::mutex> lock(d.mutex);
    json.Key("cards").Open('[');
    for (size_t i = 0; i < d.cards.size(); ++i) {
      json.Open('{').Key("used").Value(d.cards[i].used());
      json.Key("peak_used").Value(d.cards[i].peak_used());
      json.Key("segments").Value(d.cards[i].segments()).Close('}');
    }
    json.Close(']');
    json.Key("outside");
    d.outside.Write(&json);
    WritePinned(d, &json);
  }
  WriteNotes(&json);
  json.Close('}');
  return Keep(json.text());
}

int memreplay_card_follow_pinned(int (*line)(), const char* conf) {
  return FollowPinned(line, HostAllocatorModel::LimitsOf(conf)) ? 1 : 0;
}
void memreplay_card_forget_lines() { ForgetLines(); }

void memreplay_card_write(uint64_t address, const void* bytes, size_t size) {
  WriteBytes(address, bytes, size);
}
void memreplay_card_fill_with_zeros(uint64_t address, size_t size) { FillWithZeros(address, size); }
void memreplay_card_forget(uint64_t address, size_t size) {
  const auto [d, lock] = LockedDevice();
  d.known.Forget(address, size);
}
int memreplay_card_read(uint64_t address, void* bytes, size_t size) {
  return ReadBytes(address, bytes, size) ? 1 : 0;
}
void memreplay_card_mark(uint64_t address) {
  const auto [d, lock] = LockedDevice();
  d.marked.Add(address, 1);
}

int memreplay_card_marked(uint64_t address) {
  const auto [d, lock] = LockedDevice();
  return d.marked.Covers(address, 1) ? 1 : 0;
}

int memreplay_card_known(uint64_t address, size_t size) {
  const auto [d, lock] = LockedDevice();
  return d.known.Covers(address, size) ? 1 : 0;
}
const uint64_t* memreplay_card_allocator_calls(int card) {
  using Counter = std::atomic<uint64_t>;
  static_assert(Counter::is_always_lock_free && sizeof(Counter) == sizeof(uint64_t));
  Device& d = TheDevice();
  if (card < 0 || card >= d.count()) return nullptr;
  return reinterpret_cast<const uint64_t*>(&d.allocator_calls[static_cast<size_t>(card)]);
}
void memreplay_card_answer(const void* bytes, size_t size) { AnswerNext(bytes, size); }
void memreplay_card_answer_clear() { ForgetAnswers(); }

void memreplay_card_next_communicator(int ranks, int rank) { SetNextCommunicator(ranks, rank); }

void memreplay_card_begin_heap_anew() {
  BeginHeapAnew();
  SetTensorObjectsAside();
}

int memreplay_card_hide_mode(const void* overrides) {
  return HideMode(*static_cast<const TorchOverrides*>(overrides)) ? 1 : 0;
}

void memreplay_card_simulate(uint64_t total) {
  Settings settings = SettingsFromEnvironment();
  std::string error;
  settings.card = memreplay::FindCard("rtx-4090", &error);
  settings.capacity = total;
  settings.reserve = 0;
  settings.cards = 1;
  settings.addresses = memreplay::AddressOrder::kUpwards;
  settings.completion = Streams::Completion::kAtOnce;
  settings.simulated = true;
  settings.error.clear();
  ReplaceDevice(new Device(settings));
}
void memreplay_card_endless(int on) {
  const auto [d, lock] = LockedDevice();
  for (Memory& card : d.cards) card.SetEndless(on != 0);
}
void memreplay_card_explicit(int on) {
  const auto [d, lock] = LockedDevice();
  d.streams.set_completion(on != 0 ? Streams::Completion::kExplicit : Streams::Completion::kAtOnce);
}
void memreplay_card_capture(int on) {
  const auto [d, lock] = LockedDevice();
  d.all_captured = on != 0;
  d.any_capture.store(d.streams.capturing() || d.all_captured, std::memory_order_relaxed);
}
void memreplay_card_complete(uint64_t stream) {
  const auto [d, lock] = LockedDevice();
  d.streams.Synchronize(StreamKeyOf(Pointer(stream)), d.now());
}
void memreplay_card_fail_next(uint64_t calls) {
  const auto [d, lock] = LockedDevice();
  for (Memory& card : d.cards) card.FailNext(calls);
}
void memreplay_card_external(int64_t bytes) {
  const auto [d, lock] = LockedDevice();
  for (Memory& card : d.cards) card.TakeExternal(bytes);
}
