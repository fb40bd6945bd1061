#include "tests/sim/support/program_generator.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <random>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace memreplay {
namespace {

constexpr uint64_t kMi = uint64_t{1} << 20;

class Generator {
 public:
  Generator(Mix mix, uint64_t seed) : mix_(mix), random_(seed * 64 + static_cast<uint64_t>(mix)) {}

  Program Generate(int steps) {
    Header();
    while (program_.steps.size() < static_cast<size_t>(steps)) Next();
    return std::move(program_);
  }

 private:
  struct Live {
    uint64_t handle;
    uint64_t size;
    uint32_t stream;
    uint16_t pool;  // 0: default
  };

  // The standard library's distributions differ between implementations; these
  // do not.
  uint64_t Below(uint64_t n) { return random_() % n; }
  bool Chance(int percent) { return Below(100) < static_cast<uint64_t>(percent); }
  template <typename T>
  T OneOf(std::initializer_list<T> values) {
    return std::data(values)[Below(values.size())];
  }

  void Header();
  void Next();
  std::string Settings();
  uint64_t Size();
  uint64_t ThresholdSize();
  void Alloc(uint64_t size, uint32_t stream);
  void Free(size_t index);
  void FreeSome();
  void TrainingStep();
  void HolesStep();
  void AgesStep();
  void PoolStep();
  void PoolLife();
  void Add(Step step) { program_.steps.push_back(std::move(step)); }
  void Add(EventKind kind) {
    Step step;
    step.kind = kind;
    Add(std::move(step));
  }
  bool Streams() const { return program_.explicit_completion; }
  uint32_t AnyStream() {
    return static_cast<uint32_t>(Streams() ? Below(kProgramStreams) : Below(2));
  }

  const Mix mix_;
  std::mt19937_64 random_;
  Program program_;
  uint64_t next_handle_ = 1;
  std::vector<Live> live_;
  size_t live_target_ = 40;
  uint64_t max_split_mi_ = 0;  // 0: unlimited
  bool expandable_ = false;
  bool garbage_collection_ = false;
  bool roundup_ = false;
  std::vector<uint16_t> contexts_;      // pools being filled, oldest first
  std::map<uint16_t, int> pool_holds_;  // references taken
  std::set<uint16_t> released_;         // never begun again
};

void Generator::Header() {
  live_target_ = 5 + Below(60);
  program_.total = GiB(80);
  const bool any = mix_ == Mix::kSettings || mix_ == Mix::kFailures;
  if (mix_ == Mix::kStreams || mix_ == Mix::kPools || (any && Chance(40))) {
    program_.explicit_completion = true;
  }
  if (mix_ == Mix::kPressure || mix_ == Mix::kLimits || mix_ == Mix::kExpandable ||
      ((any || mix_ == Mix::kPools || mix_ == Mix::kStreams) && Chance(50))) {
    const uint64_t mebibytes = OneOf({60, 100, 150, 256, 401, 1024});
    program_.total = Bytes(mebibytes * kMi + OneOf({0, 1, 512}));
  }
  if (mix_ == Mix::kExpandable || (any && Chance(30))) expandable_ = true;
  if (mix_ == Mix::kPools && Chance(30)) expandable_ = true;
  if (mix_ == Mix::kLimits) {
    if (Chance(75)) program_.fraction = OneOf({0.3, 0.5, 0.75, 0.9});
    garbage_collection_ = program_.fraction.has_value() && Chance(60);
    // An oversize block is never split, so nothing may have split it before:
    // the option stays for the whole program, and expandable segments stay off.
    if (Chance(70)) max_split_mi_ = OneOf<uint64_t>({21, 25, 40, 64});
  } else if (mix_ == Mix::kPressure && Chance(30)) {
    max_split_mi_ = OneOf<uint64_t>({21, 40});
  }
  if (any && Chance(40)) garbage_collection_ = true;
  if (garbage_collection_ && !program_.fraction.has_value()) program_.fraction = 0.8;
  roundup_ = (any || mix_ == Mix::kThresholds || mix_ == Mix::kLogUniform) && Chance(30);
  if (mix_ == Mix::kExpandable && Chance(40)) program_.total = GiB(4);
  program_.conf = Settings();
}

std::string Generator::Settings() {
  std::vector<std::string> parts;
  if (max_split_mi_ != 0) parts.push_back(absl::StrCat("max_split_size_mb:", max_split_mi_));
  if (expandable_ || mix_ == Mix::kSettings || mix_ == Mix::kExpandable) {
    parts.push_back(absl::StrCat("expandable_segments:", expandable_ ? "True" : "False"));
  }
  if (garbage_collection_) {
    parts.push_back(absl::StrCat("garbage_collection_threshold:", OneOf({0.1, 0.5, 0.8, 0.95})));
  }
  if (roundup_) {
    parts.push_back(Chance(50) ? absl::StrCat("roundup_power2_divisions:", OneOf({2, 4, 8, 16}))
                               : "roundup_power2_divisions:[1:4,2:8,16:2,64:1,>:4]");
  }
  return absl::StrJoin(parts, ",");
}

uint64_t Generator::ThresholdSize() {
  uint64_t size = OneOf<uint64_t>({512, 1024, kMi, 2 * kMi, 10 * kMi, 12 * kMi, 19 * kMi, 20 * kMi,
                                   21 * kMi, 40 * kMi, kMi + 512, 3 * 512});
  if (max_split_mi_ != 0 && Chance(50)) {
    size = OneOf<uint64_t>({max_split_mi_, max_split_mi_ + 20, max_split_mi_ - 1}) * kMi;
  }
  const int64_t shift = OneOf<int64_t>({0, 0, 1, -1, 512, -512, 513, -513, 1024});
  return static_cast<uint64_t>(std::max<int64_t>(1, static_cast<int64_t>(size) + shift));
}

uint64_t Generator::Size() {
  if (mix_ == Mix::kThresholds) return ThresholdSize();
  const uint64_t ceiling =
      Chance(1) ? program_.total.value() + program_.total.value() / 4
                : std::max<uint64_t>(4 * kMi, program_.total.value() / OneOf({2, 4, 8, 8}));
  uint64_t size;
  const uint64_t style = mix_ == Mix::kLogUniform ? 1 : Below(4);
  if (style == 0) {
    size = ThresholdSize();
  } else if (style == 1) {
    size = static_cast<uint64_t>(std::exp2(static_cast<double>(Below(1u << 20)) / (1u << 20) * 28));
  } else if (style == 2) {
    size = 1 + Below(Chance(50) ? 8192 : kMi);
  } else {
    size = 1 + Below(64 * kMi);
  }
  return std::clamp<uint64_t>(size, 1, ceiling);
}

void Generator::Alloc(uint64_t size, uint32_t stream) {
  Step step;
  step.kind = EventKind::kAlloc;
  step.handle = next_handle_++;
  step.size = size;
  step.stream = stream;
  live_.push_back({step.handle, size, stream, contexts_.empty() ? uint16_t{0} : contexts_.back()});
  Add(std::move(step));
}

void Generator::Free(size_t index) {
  Step step;
  step.kind = EventKind::kFree;
  step.handle = live_[index].handle;
  step.stream = live_[index].stream;
  Add(std::move(step));
  live_.erase(live_.begin() + static_cast<ptrdiff_t>(index));
}

// Frees one block, the oldest, the newest, or every other one.
void Generator::FreeSome() {
  if (live_.empty()) return;
  switch (Below(10)) {
    case 0: Free(0); return;
    case 1: Free(live_.size() - 1); return;
    case 2:
      for (size_t i = 0; i < live_.size(); ++i) Free(i);
      return;
    default: Free(Below(live_.size())); return;
  }
}

void Generator::TrainingStep() {
  const uint64_t length = 1 + Below(32);
  const uint64_t width = OneOf<uint64_t>({2048, 65536, 393216});
  const size_t layers = 1 + Below(6);
  std::vector<uint64_t> saved;
  const size_t before = live_.size();
  for (size_t layer = 0; layer < layers; ++layer) {
    Alloc(length * width, 0);
    Alloc(length * width * 4 + 4 * layer, 0);
    Alloc(length * 512, 0);
    Free(live_.size() - 1 - Below(2));
  }
  for (size_t layer = layers; layer > 0; --layer) {
    Alloc(width * 8, 0);
    Free(live_.size() - 2);
    if (live_.size() > before + 2) Free(before + Below(live_.size() - before));
  }
  while (live_.size() > before + Below(3)) Free(live_.size() - 1);
}

// Releases every other one of a row of blocks to the driver, then requests one that spans several
// of the holes.
void Generator::HolesStep() {
  const uint64_t unit = OneOf<uint64_t>({20, 20, 10, 2}) * kMi;
  const size_t before = live_.size();
  const size_t count = 3 + Below(6);
  for (size_t i = 0; i < count; ++i) Alloc(unit, 0);
  for (size_t i = before; i < live_.size(); ++i) Free(i);
  if (contexts_.empty()) Add(EventKind::kEmptyCache);
  while (live_.size() > before) Free(before + Below(live_.size() - before));
  const uint64_t units = Chance(50) ? count : 2 + Below(count - 1);
  Alloc(unit * units - Below(2) * 512, 0);
}

// Caches blocks of several ages, then makes a request that lets garbage collection choose among
// them.
void Generator::AgesStep() {
  const size_t before = live_.size();
  const size_t count = 3 + Below(5);
  for (size_t i = 0; i < count; ++i) Alloc((12 + 2 * i) * kMi, 0);
  while (live_.size() > before) {
    Free(before + Below(live_.size() - before));
    for (uint64_t i = Below(4); i > 0; --i) {
      Alloc((2 + Below(30)) * kMi, 0);
      Free(live_.size() - 1);
    }
  }
  Alloc((20 + Below(30)) * kMi, 0);
}

// Runs a pool from its beginning to the release of its memory.
void Generator::PoolLife() {
  uint16_t pool = 1;
  while (pool < kProgramPools.size() && (pool_holds_[pool] > 0 || released_.count(pool) != 0)) {
    ++pool;
  }
  if (!contexts_.empty() || pool == kProgramPools.size()) return PoolStep();
  const uint64_t ceiling = std::max<uint64_t>(program_.total.value() / 16, 1);
  const auto add = [&](EventKind kind) {
    Step step;
    step.kind = kind;
    step.pool = pool;
    Add(std::move(step));
  };
  const bool has_options = !expandable_ && Chance(50);
  if (has_options) {
    add(EventKind::kPoolCreate);
    program_.steps.back().size = Below(4);  // PoolFlags
    ++pool_holds_[pool];
  }
  add(EventKind::kPoolBegin);
  contexts_.push_back(pool);
  for (uint64_t i = 1 + Below(5); i > 0; --i) Alloc(std::min(Size(), ceiling), 0);
  contexts_.pop_back();
  add(EventKind::kPoolEnd);
  for (size_t i = live_.size(); i > 0; --i) {
    if (live_[i - 1].pool == pool) Free(i - 1);
  }
  add(EventKind::kPoolRelease);
  if (has_options) {
    // The pool stays, empty, and may serve others; the default pools run dry.
    if (Chance(60)) {
      for (int i = 0; i < 6; ++i) Alloc(program_.total.value() / 8, 0);
      for (int i = 0; i < 4; ++i) Alloc(1 + Below(8 * kMi), 0);
    }
    return;
  }
  released_.insert(pool);
  if (Chance(70)) Add(EventKind::kEmptyCache);
}

void Generator::PoolStep() {
  if (!contexts_.empty() && Chance(60)) {
    const uint16_t pool = contexts_.back();
    contexts_.pop_back();
    Step step;
    step.kind = EventKind::kPoolEnd;
    step.pool = pool;
    Add(std::move(step));
    return;
  }
  const auto pool = static_cast<uint16_t>(1 + Below(kProgramPools.size() - 1));
  const bool begun = std::find(contexts_.begin(), contexts_.end(), pool) != contexts_.end();
  Step step;
  step.pool = pool;
  if (!begun && contexts_.size() < 2 && released_.count(pool) == 0) {
    step.kind = EventKind::kPoolBegin;
    contexts_.push_back(pool);
    ++pool_holds_[pool];
  } else if (!begun && pool_holds_[pool] > 0) {
    if (--pool_holds_[pool] == 0) {
      released_.insert(pool);
      // The number of a pool's segments goes wrong when an expandable range is released in parts
      // while some of it is live; PyTorch then leaves its state undefined. So such a pool is
      // emptied before.
      for (size_t i = live_.size(); expandable_ && i > 0; --i) {
        if (live_[i - 1].pool == pool) Free(i - 1);
      }
    }
    step.kind = EventKind::kPoolRelease;
  } else {
    return;
  }
  Add(std::move(step));
}

void Generator::Next() {
  const uint64_t choice = Below(1000);
  if (choice < 8) {
    if (contexts_.empty() || Chance(30)) Add(EventKind::kEmptyCache);
    return;
  }
  if (choice < 12) return Add(EventKind::kResetPeak);
  if (choice < 20 && mix_ == Mix::kPools) return PoolLife();
  if (choice < 60 && mix_ == Mix::kPools) return PoolStep();
  if (choice < 60 && mix_ == Mix::kTraining) return TrainingStep();
  if (choice < 70 && mix_ == Mix::kExpandable) return HolesStep();
  if (choice < 30 && mix_ == Mix::kLimits) return AgesStep();
  if (choice < 200 && Streams()) {
    Step step;
    if (live_.empty() || Chance(25)) {
      step.kind = EventKind::kStreamDone;
      step.stream = AnyStream();
      return Add(std::move(step));
    }
    const Live& block = live_[Below(live_.size())];
    if (block.pool != 0 && expandable_) return;  // as at the release of a pool
    step.kind = EventKind::kRecordStream;
    step.handle = block.handle;
    step.stream = AnyStream();
    return Add(std::move(step));
  }
  if (choice < 230 && mix_ == Mix::kFailures) {
    Step step;
    step.kind = EventKind::kFailNext;
    step.size = 1 + Below(4);
    return Add(std::move(step));
  }
  if (choice < 230 && (mix_ == Mix::kSettings || mix_ == Mix::kExpandable) &&
      Chance(mix_ == Mix::kSettings ? 30 : 8)) {
    Step step;
    if (mix_ == Mix::kSettings && Chance(30)) {
      step.kind = EventKind::kFraction;
      step.text = absl::StrCat(OneOf({0.25, 0.5, 0.9, 1.0}));
    } else {
      expandable_ = Chance(50);
      garbage_collection_ = Chance(50);
      roundup_ = mix_ == Mix::kSettings && Chance(50);
      step.kind = EventKind::kSettings;
      step.text = Settings();
    }
    return Add(std::move(step));
  }
  if (live_.size() > live_target_ * 2 ||
      (!live_.empty() && Chance(live_.size() < live_target_ ? 35 : 60))) {
    return FreeSome();
  }
  const uint32_t stream = Chance(60) ? 0 : AnyStream();
  Alloc(Size(), stream);
}

}  // namespace

std::string_view MixName(Mix mix) {
  switch (mix) {
    case Mix::kThresholds: return "Thresholds";
    case Mix::kLogUniform: return "LogUniform";
    case Mix::kTraining: return "Training";
    case Mix::kStreams: return "Streams";
    case Mix::kPressure: return "Pressure";
    case Mix::kLimits: return "Limits";
    case Mix::kExpandable: return "Expandable";
    case Mix::kPools: return "Pools";
    case Mix::kFailures: return "Failures";
    case Mix::kSettings: return "Settings";
    case Mix::kCount: break;
  }
  return "";
}

Program GenerateProgram(Mix mix, uint64_t seed, int steps) {
  return Generator(mix, seed).Generate(steps);
}

Trace ToTrace(const Program& program) {
  Trace trace;
  trace.format = "flat_jsonl";
  trace.is_program = true;
  trace.settings.emplace().conf = program.conf;
  trace.total_memory = program.total;
  trace.memory_fraction = program.fraction;
  trace.completion = program.explicit_completion ? Completion::kExplicit : Completion::kAtOnce;
  for (uint32_t stream = 0; stream < kProgramStreams; ++stream) {
    trace.streams.push_back(StreamHandle(stream));
  }
  trace.pools.assign(kProgramPools.begin(), kProgramPools.end());
  DeviceTrace& device = trace.devices.emplace_back();
  for (const Step& step : program.steps) {
    Event& event = device.events.emplace_back();
    event.kind = step.kind;
    event.address = Address(step.handle);
    event.size = Bytes(step.size);
    event.stream = step.stream;
    event.pool = step.pool;
    if (HasText(step.kind)) event.text_or_stack = trace.strings.Intern(step.text);
  }
  return trace;
}

}  // namespace memreplay
