#include "record/card/hooks/torch_overrides.h"

namespace memreplay::card {
namespace {

constexpr int kNoArguments = 0x4;
constexpr int kOneArgument = 0x8;
constexpr int kFastCall = 0x80;

using Call = void*(void* self, void* argument);
using FastCall = void*(void* self, void* const* arguments, int64_t count);

TorchOverrides torch;
Call* many = nullptr;
Call* one = nullptr;
FastCall* several = nullptr;
Call* length = nullptr;
Call* pop = nullptr;
Call* push = nullptr;

bool OneModeIsOn(void* self) {
  void* number = length(self, nullptr);
  if (number == nullptr) return false;
  const long modes = torch.as_long(number);
  torch.release(number);
  return modes == 1;
}

// Returns PyTorch's answer without the hidden mode. With any mode PyTorch answers yes at once; if
// the hidden mode is the only one, the check is repeated without it.
template <typename Ask>
void* Answer(void* self, const Ask& ask) {
  void* answer = ask();
  if (answer != torch.yes || !OneModeIsOn(self)) return answer;
  void* mode = pop(self, nullptr);
  if (mode == nullptr) return nullptr;
  if (mode == torch.mode) {
    torch.release(answer);
    answer = ask();
  }
  void* pushed = push(self, mode);
  torch.release(mode);
  if (pushed == nullptr) return nullptr;
  torch.release(pushed);
  return answer;
}

void* Many(void* self, void* arguments) {
  return Answer(self, [&] { return many(self, arguments); });
}
void* One(void* self, void* argument) {
  return Answer(self, [&] { return one(self, argument); });
}
void* Several(void* self, void* const* arguments, int64_t count) {
  return Answer(self, [&] { return several(self, arguments, count); });
}

}  // namespace

bool HideMode(const TorchOverrides& overrides) {
  if (torch.mode != nullptr || overrides.many->flags != kOneArgument ||
      overrides.one->flags != kOneArgument || overrides.several->flags != kFastCall ||
      overrides.length->flags != kNoArguments || overrides.pop->flags != kNoArguments ||
      overrides.push->flags != kOneArgument) {
    return false;
  }
  torch = overrides;
  many = reinterpret_cast<Call*>(torch.many->function);
  one = reinterpret_cast<Call*>(torch.one->function);
  several = reinterpret_cast<FastCall*>(torch.several->function);
  length = reinterpret_cast<Call*>(torch.length->function);
  pop = reinterpret_cast<Call*>(torch.pop->function);
  push = reinterpret_cast<Call*>(torch.push->function);
  torch.many->function = reinterpret_cast<void*>(&Many);
  torch.one->function = reinterpret_cast<void*>(&One);
  torch.several->function = reinterpret_cast<void*>(&Several);
  return true;
}

}  // namespace memreplay::card
