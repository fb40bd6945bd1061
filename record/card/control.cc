#include "record/card/control.h"

#include <string>

#include "record/card/api/nccl.h"
#include "record/card/device/copies.h"
#include "record/card/device/device.h"
#include "record/card/device/entry.h"
#include "record/card/hooks/heap.h"
#include "record/card/hooks/pinned_hook.h"
#include "record/card/hooks/tensor_objects.h"
#include "record/card/hooks/torch_overrides.h"
#include "record/card/model/json.h"
#include "record/card/prepare.h"

namespace memreplay::card {
namespace {

// Returns text that stays valid until this thread's next call; never destroyed.
const char* keep(const std::string& text) {
  thread_local std::string* kept = nullptr;
  if (kept == nullptr) kept = new std::string;
  *kept = text;
  return kept->c_str();
}

std::string& prepare_error() {
  static std::string* error = new std::string;
  return *error;
}

void WritePinned(const Device& d, Json* json) {
  const Pinned& pinned = d.pinned;
  json->key("pinned").open('{').key("peak").value(pinned.peak());
  json->key("blocks").value(pinned.peak_blocks()).key("refused").value(d.refused_pins);
  if (d.settings.host_memory < kMaxHostBytes) json->key("limit").value(d.settings.host_memory);
  json->key("from_gpu").value(std::uint64_t{d.shares_host_memory() ? 1U : 0U});
  json->key("lines").open('[');
  for (std::size_t i = 0; i < pinned.peak_lines().size(); ++i) {
    const Pinned::Line& line = pinned.peak_lines()[i];
    if (line.blocks == 0) continue;
    json->open('{').key("line").value(i).key("requested").value(line.requested);
    json->key("held").value(line.held).key("blocks").value(line.blocks).close('}');
  }
  json->close(']');
  // The model is worth asking only if it has what PyTorch's allocator had.
  if (pinned.follows() && pinned.models()[0].peak() == pinned.torch_peak()) {
    json->key("unrounded_peak")
        .value(pinned.peak() - pinned.torch_peak() + pinned.models()[1].peak());
  }
  json->close('}');
}

}  // namespace
}  // namespace memreplay::card

using namespace memreplay::card;  // NOLINT: what follows is C

int memreplay_card_prepare(const char* torch_folder, const char* out_folder) {
  std::string error;
  const bool ok = Prepare(torch_folder, out_folder, &error);
  prepare_error() = error;
  return ok ? 0 : -1;
}

const char* memreplay_card_error() {
  return keep(prepare_error().empty() ? device().settings.error : prepare_error());
}

const char* memreplay_card_summary() {
  Device& d = device();
  const Settings& settings = d.settings;
  Json json;
  json.open('{');
  json.key("card").value(settings.card.has_value() ? settings.card->name : "");
  json.key("title").value(settings.card.has_value() ? settings.card->title : "");
  json.key("multiprocessors")
      .value(static_cast<std::uint64_t>(settings.card.has_value() ? settings.card->multiprocessors
                                                                  : 0));
  json.key("capacity").value(settings.capacity).key("reserve").value(settings.reserve);
  json.key("reserve_reason").value(settings.reserve_reason);
  json.key("completion")
      .value(settings.completion == Streams::Completion::kLagging ? "lagging" : "at-once");
  json.key("addresses")
      .value(settings.addresses == memreplay::AddressOrder::kUpwards ? "up" : "down");
  json.key("launches").value(d.launches.load());
  {
    const std::lock_guard<std::mutex> lock(d.mutex);
    json.key("cards").open('[');
    for (std::size_t i = 0; i < d.cards.size(); ++i) {
      json.open('{').key("used").value(d.cards[i].used());
      json.key("peak_used").value(d.cards[i].peak_used());
      json.key("segments").value(d.cards[i].segments()).close('}');
    }
    json.close(']');
    json.key("outside");
    d.outside.Write(&json);
    WritePinned(d, &json);
  }
  WriteNotes(&json);
  json.close('}');
  return keep(json.text());
}

int memreplay_card_follow_pinned(int (*line)(), std::uint64_t rounded_up_to,
                                 std::uint64_t kept_up_to) {
  return FollowPinned(line, {rounded_up_to, kept_up_to}) ? 1 : 0;
}
void memreplay_card_forget_lines() { ForgetLines(); }

void memreplay_card_write(std::uint64_t address, const void* bytes, std::size_t size) {
  WriteBytes(address, bytes, size);
}
void memreplay_card_fill_with_zeros(std::uint64_t address, std::size_t size) {
  FillWithZeros(address, size);
}
void memreplay_card_forget(std::uint64_t address, std::size_t size) {
  Device& d = device();
  const std::lock_guard<std::mutex> lock(d.mutex);
  d.known.forget(address, size);
}
int memreplay_card_read(std::uint64_t address, void* bytes, std::size_t size) {
  return ReadBytes(address, bytes, size) ? 1 : 0;
}
void memreplay_card_mark(std::uint64_t address) {
  Device& d = device();
  const std::lock_guard<std::mutex> lock(d.mutex);
  d.marked.add(address, 1);
}

int memreplay_card_marked(std::uint64_t address) {
  Device& d = device();
  const std::lock_guard<std::mutex> lock(d.mutex);
  return d.marked.covers(address, 1) ? 1 : 0;
}

int memreplay_card_known(std::uint64_t address, std::size_t size) {
  Device& d = device();
  const std::lock_guard<std::mutex> lock(d.mutex);
  return d.known.covers(address, size) ? 1 : 0;
}
const std::uint64_t* memreplay_card_allocator_calls(int card) {
  using Counter = std::atomic<std::uint64_t>;
  static_assert(Counter::is_always_lock_free && sizeof(Counter) == sizeof(std::uint64_t));
  Device& d = device();
  if (card < 0 || card >= d.count()) return nullptr;
  return reinterpret_cast<const std::uint64_t*>(&d.allocator_calls[static_cast<std::size_t>(card)]);
}
void memreplay_card_answer(const void* bytes, std::size_t size) { AnswerNext(bytes, size); }
void memreplay_card_answer_clear() { ForgetAnswers(); }

void memreplay_card_next_communicator(int ranks, int rank) { SetNextCommunicator(ranks, rank); }

void memreplay_card_begin_heap_anew() {
  BeginHeapAnew();
  SetTensorObjectsAside();
}

int memreplay_card_hide_mode(const void* overrides) {
  return HideMode(*static_cast<const TorchOverrides*>(overrides)) ? 1 : 0;
}

void memreplay_card_simulate(std::uint64_t total) {
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
  Device& d = device();
  const std::lock_guard<std::mutex> lock(d.mutex);
  for (Memory& card : d.cards) card.endless(on != 0);
}
void memreplay_card_explicit(int on) {
  Device& d = device();
  const std::lock_guard<std::mutex> lock(d.mutex);
  d.streams.set_completion(on != 0 ? Streams::Completion::kExplicit : Streams::Completion::kAtOnce);
}
void memreplay_card_capture(int on) {
  Device& d = device();
  const std::lock_guard<std::mutex> lock(d.mutex);
  d.all_captured = on != 0;
  d.any_capture.store(d.streams.capturing() || d.all_captured, std::memory_order_relaxed);
}
void memreplay_card_complete(std::uint64_t stream) {
  Device& d = device();
  const std::lock_guard<std::mutex> lock(d.mutex);
  d.streams.synchronize(stream_key(pointer(stream)), d.now());
}
void memreplay_card_fail_next(std::uint64_t calls) {
  Device& d = device();
  const std::lock_guard<std::mutex> lock(d.mutex);
  for (Memory& card : d.cards) card.fail_next(calls);
}
void memreplay_card_external(std::int64_t bytes) {
  Device& d = device();
  const std::lock_guard<std::mutex> lock(d.mutex);
  for (Memory& card : d.cards) card.external(bytes);
}
