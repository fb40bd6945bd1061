// A recording of a step of training, written event by event: a model that calls one block twice.
#pragma once

#include <cstdint>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "tests/trace/support/recording.h"
#include "trace/schedule/schedule.h"
#include "trace/value/trace.h"
#include "trace/value/units.h"

namespace memreplay::testing {

using Frames = std::vector<std::tuple<std::string, std::string, uint32_t>>;

inline constexpr char kModuleFile[] = "/x/torch/nn/modules/module.py";

// Allocations have names; sizes are in MiB.
class Training {
 public:
  // Returns frames of a call of a module from `outer`.
  static Frames Called(Frames inner, const Frames& outer) {
    inner.emplace_back(kModuleFile, "_call_impl", 1);
    inner.emplace_back(kModuleFile, "_wrapped_call_impl", 2);
    inner.insert(inner.end(), outer.begin(), outer.end());
    return inner;
  }
  static Frames Train() { return {{"train.py", "step", 5}}; }
  static Frames Model(uint32_t line) { return Called({{"model.py", "forward", line}}, Train()); }
  static Frames Block(uint32_t line) { return Called({{"model.py", "forward", line}}, Model(100)); }
  static Frames Linear() {
    return Called({{"/x/torch/nn/modules/linear.py", "forward", 1}}, Model(101));
  }
  static Frames Loss() {
    Frames frames = {{"/x/torch/nn/functional.py", "cross_entropy", 1}};
    const Frames model = Model(102);
    frames.insert(frames.end(), model.begin(), model.end());
    return frames;
  }
  static Frames Adam() {
    return {{"/x/torch/optim/adam.py", "_multi_tensor_adam", 1},
            {"/x/torch/optim/adam.py", "step", 2},
            {"train.py", "step", 6}};
  }

  Training& In(const Frames& frames) {  // none: a thread of autograd
    Trace& trace = recording_.trace();
    std::vector<uint32_t> indexes;
    for (const auto& [file, name, line] : frames) {
      indexes.push_back(
          trace.stacks.InternFrame({trace.strings.Intern(file), trace.strings.Intern(name), line}));
    }
    recording_.Stack(trace.stacks.InternStack(indexes));
    return *this;
  }
  Training& Make(const std::string& name, uint64_t mib) {
    names_.push_back(name);
    const uint64_t address = names_.size() << 32;
    live_[name] = {address, mib};
    recording_.Alloc(address, MiB(mib).value());
    return *this;
  }
  Training& Free(const std::string& name) {
    const auto [address, mib] = live_[name];
    recording_.Free(address, MiB(mib).value());
    return *this;
  }
  Training& Oom(uint64_t mib) {
    recording_.Oom(0, MiB(mib).value());
    return *this;
  }
  Schedule Build() { return recording_.NoSegments().Build(); }

  // Returns "+a +b -a" for what a schedule made of this one requests, with "+8" for what the
  // recording lacks, by its size, and "-8" for its free.
  std::string Words(const Schedule& schedule) const {
    std::string words;
    absl::flat_hash_map<AllocationId, uint64_t> added;
    for (const Event& request : schedule.requests()) {
      if (request.kind != EventKind::kAlloc && request.kind != EventKind::kFree) {
        absl::StrAppend(&words, words.empty() ? "" : " ", std::string(EventKindName(request.kind)));
        continue;
      }
      const bool is_alloc = request.kind == EventKind::kAlloc;
      if (is_alloc && request.id >= names_.size()) added[request.id] = request.size / MiB(1);
      absl::StrAppend(
          &words, words.empty() ? "" : " ", is_alloc ? "+" : "-",
          request.id < names_.size() ? names_[request.id] : absl::StrCat(added[request.id]));
    }
    return words;
  }

 private:
  Recording recording_;
  std::vector<std::string> names_;  // by id
  absl::flat_hash_map<std::string, std::pair<uint64_t, uint64_t>> live_;
};

// Each block makes a temporary t, saves s and returns r; the loss is a number.
inline Training TwoBlocks() {
  Training training;
  training.In(Training::Block(1)).Make("t1", 3).Make("s1", 40).Free("t1");
  training.In(Training::Block(2)).Make("r1", 4);
  training.In(Training::Block(1)).Make("t2", 3).Make("s2", 40).Free("t2");
  training.In(Training::Block(2)).Make("r2", 4);
  training.In(Training::Loss()).Make("loss", 1);
  training.In({}).Make("d2", 4).Free("r2");          // of the loss
  training.Make("e2", 40).Free("s2").Make("d1", 4);  // block 2
  training.Free("d2").Free("e2").Free("r1");
  training.Make("e1", 40).Free("s1").Free("d1").Free("e1");
  training.In(Training::Train()).Free("loss");
  return training;
}

}  // namespace memreplay::testing
