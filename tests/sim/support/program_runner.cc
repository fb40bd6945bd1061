#include "tests/sim/support/program_runner.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/device/simulated_device.h"
#include "sim/model/caching_allocator.h"
#include "sim/observe/overlap_checker.h"
#include "sim/observe/usage.h"
#include "sim/run/run.h"
#include "sim/settings/allocator_config.h"
#include "tests/sim/support/statistics_identities.h"
#include "trace/bytes/byte_sink.h"
#include "trace/formats/flat/flat_jsonl.h"
#include "trace/schedule/schedule.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

class CheckedRun final : public Observer {
 public:
  CheckedRun(const Program& program, const TorchProfile& profile, bool may_throw)
      : program_(program),
        profile_(profile),
        may_throw_(may_throw),
        schedule_(Schedule::Build(std::make_shared<const Trace>(ToTrace(program)), 0)),
        device_(SimulatedDevice::Options{.capacity = program.total,
                                         .explicit_completion = program.explicit_completion}) {
    AllocatorConfig config;
    if (absl::Status status = ParseAllocatorConf(program.conf, profile, &config); !status.ok()) {
      Fail(StrCat("the program's settings: ", std::string(status.message())));
    }
    CachingAllocatorOptions options;
    options.streams = schedule_.trace().streams;
    options.pools = schedule_.trace().pools;
    allocator_ = std::make_unique<CachingAllocator>(profile, config, device_, std::move(options));
    if (program.fraction.has_value() && !allocator_->SetMemoryFraction(*program.fraction).ok()) {
      Fail("the program's memory fraction was refused");
    }
  }

  ProgramOutcome Run() {
    const RunResult result = memreplay::Run(schedule_, *allocator_, *this);
    Check();
    if (result.ooms != outcome_.ooms) Fail("Run() counts another number of out-of-memory events");
    outcome_.rules = allocator_->rule_counts();
    for (const RequestFailure& failure : result.failures) {
      if (may_throw_ && !failure.is_out_of_memory) return outcome_;
      const EventKind kind = schedule_.requests()[failure.request].kind;
      if (kind == EventKind::kAlloc || kind == EventKind::kFree) {
        Fail(StrCat("request ", failure.request, ", ", EventKindName(kind), ": ", failure.message));
      }
    }
    CheckEnd();
    outcome_.rules = allocator_->rule_counts();
    return outcome_;
  }

  void OnEvent(const Event& event) override {
    checker_.OnEvent(event);
    usage_.OnEvent(event);
    ++outcome_.events;
    if (event.kind == EventKind::kAlloc) {
      ++granted_;
      if (event.id >= live_.size()) live_.resize(event.id + 1);
      live_[event.id] = true;
    } else if (event.kind == EventKind::kFree) {
      live_[event.id] = false;
    } else if (event.kind == EventKind::kOom) {
      ++refused_;
      ++outcome_.ooms;
    }
  }

  void OnRequest(size_t request) override {
    if (request > 0) Check();
    when_ =
        StrCat("after request ", request, ", ", EventKindName(schedule_.requests()[request].kind));
    expects_answer_ = schedule_.requests()[request].kind == EventKind::kAlloc;
    granted_ = refused_ = 0;
  }

 private:
  // Keeps the first failure only.
  void Fail(const std::string& what) {
    if (outcome_.failure.empty()) outcome_.failure = when_.empty() ? what : when_ + ": " + what;
  }
  void Apply(const Event& request) {
    when_ = StrCat("after the final ", EventKindName(request.kind));
    expects_answer_ = false;
    granted_ = refused_ = 0;
    (void)allocator_->Apply(request, *this);  // an error where a pool was not being filled
    Check();
  }

  void Check() {
    if (!outcome_.failure.empty()) return;
    allocator_->CheckInvariants();
    if (checker_.violation().has_value()) return Fail(checker_.violation()->message);
    const int answers = expects_answer_ ? 1 : 0;
    if (granted_ + refused_ > answers || (!may_throw_ && granted_ + refused_ < answers)) {
      return Fail(StrCat("granted ", granted_, " times and out of memory ", refused_, " times"));
    }
    const MemoryState segments = allocator_->Segments();
    const std::string broken = BrokenStatisticsIdentity(segments, allocator_->statistics());
    if (!broken.empty()) return Fail(broken);
    if (UsageOf(segments) != usage_.current()) {
      return Fail("the events and the segments disagree on usage");
    }
    Bytes taken;
    for (size_t i = 0; i < segments.size(); ++i) {
      taken += RoundUp(segments[i].total_size, MiB(2));
      if (i > 0 && segments[i - 1].address >= segments[i].address) {
        return Fail("segments are not ascending");
      }
    }
    if (taken + device_.FreeMemory() != program_.total) {
      return Fail(StrCat("the device has ", device_.FreeMemory().value(),
                         " bytes free while segments take ", taken.value()));
    }
    CheckFreeBlocks();
  }

  void CheckFreeBlocks() {
    Bytes free;
    using Key = std::tuple<uint16_t, bool, uint32_t, Bytes, Address>;
    std::optional<Key> previous;
    allocator_->VisitFreeBlocks([&](const FreeBlock& block) {
      free += block.size;
      // Releases that order equal blocks by age leave the address out of it.
      const bool by_address = profile_.free_tie == FreeTie::kAddress;
      const Key key(block.pool, block.is_large, block.stream, block.size,
                    by_address ? block.address : Address());
      if (previous.has_value() && (by_address ? *previous >= key : *previous > key)) {
        Fail("free blocks are not in the order of the free sets");
      }
      previous = key;
    });
    const Bytes unused = usage_.current().reserved() - usage_.current().active();
    if (free != unused) {
      Fail(StrCat("free blocks add up to ", free.value(), ", reserved less active is ",
                  unused.value()));
    }
  }

  // Ends all pools, frees what is live, flushes: then nothing is left.
  void CheckEnd() {
    Event request;
    request.kind = EventKind::kPoolEnd;
    for (request.pool = 1; request.pool < kProgramPools.size(); ++request.pool) Apply(request);
    request = Event{};
    request.kind = EventKind::kFree;
    for (request.id = 0; request.id < live_.size(); ++request.id) {
      if (live_[request.id]) Apply(request);
    }
    request = Event{};
    request.kind = EventKind::kEmptyCache;
    Apply(request);
    if (usage_.current().active() != Bytes(0)) Fail("active bytes are left");
    for (const SegmentInfo& segment : allocator_->Segments()) {
      if (segment.pool_id.is_default()) Fail("a segment of the default pools is left");
    }
  }

  const Program& program_;
  const TorchProfile& profile_;
  const bool may_throw_;
  const Schedule schedule_;
  SimulatedDevice device_;
  std::unique_ptr<CachingAllocator> allocator_;
  OverlapChecker checker_;
  UsageObserver usage_;
  ProgramOutcome outcome_;
  std::vector<bool> live_;  // by AllocationId
  std::string when_;
  bool expects_answer_ = false;  // the request is an allocation
  int granted_ = 0, refused_ = 0;
};

}  // namespace

ProgramOutcome RunProgram(const Program& program, const TorchProfile& profile) {
  return CheckedRun(program, profile, /*may_throw=*/false).Run();
}

ProgramOutcome RunAnyProgram(const Program& program, const TorchProfile& profile) {
  return CheckedRun(program, profile, /*may_throw=*/true).Run();
}

ProgramOutcome RunProgramIsolated(const Program& program, const TorchProfile& profile) {
  ProgramOutcome outcome;
  int ends[2];
  if (pipe(ends) != 0) {
    outcome.failure = "no pipe";
    return outcome;
  }
  const pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    dup2(ends[1], STDERR_FILENO);  // what is said before a stop
    const ProgramOutcome result = RunProgram(program, profile);
    const auto send = [&](const void* data, size_t size) {
      const char* bytes = static_cast<const char*>(data);
      while (size > 0) {
        const ssize_t sent = write(ends[1], bytes, size);
        if (sent <= 0) _exit(3);
        bytes += sent;
        size -= static_cast<size_t>(sent);
      }
    };
    send(&result.rules, sizeof(result.rules));
    send(&result.events, sizeof(result.events));
    send(&result.ooms, sizeof(result.ooms));
    send(result.failure.data(), result.failure.size());
    _exit(0);
  }
  close(ends[1]);
  std::string received;
  char buffer[4096];
  while (true) {
    const ssize_t got = read(ends[0], buffer, sizeof(buffer));
    if (got <= 0) break;
    received.append(buffer, static_cast<size_t>(got));
  }
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  constexpr size_t kFixed = sizeof(outcome.rules) + sizeof(outcome.events) + sizeof(outcome.ooms);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0 || received.size() < kFixed) {
    outcome.failure =
        StrCat(WIFSIGNALED(status) ? "stopped by signal " : "ended with status ",
               WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status), ": ", received);
    return outcome;
  }
  const char* at = received.data();
  const auto take = [&at](void* out, size_t size) {
    std::memcpy(out, at, size);
    at += size;
  };
  take(&outcome.rules, sizeof(outcome.rules));
  take(&outcome.events, sizeof(outcome.events));
  take(&outcome.ooms, sizeof(outcome.ooms));
  outcome.failure = received.substr(kFixed);
  return outcome;
}

Program ShrinkProgram(Program program, const std::function<bool(const Program&)>& fails) {
  // Leave out runs of steps, long ones first, until no single step can go.
  for (size_t length = std::max<size_t>(program.steps.size() / 2, 1); length > 0;) {
    bool shorter = false;
    for (size_t begin = 0; begin < program.steps.size();) {
      Program candidate = program;
      const size_t end = std::min(begin + length, candidate.steps.size());
      candidate.steps.erase(candidate.steps.begin() + static_cast<ptrdiff_t>(begin),
                            candidate.steps.begin() + static_cast<ptrdiff_t>(end));
      if (fails(candidate)) {
        program = std::move(candidate);
        shorter = true;
      } else {
        begin = end;
      }
    }
    if (length == 1 && !shorter) break;
    if (length > 1) length /= 2;
  }
  // Simpler values where they make no difference.
  const auto try_value = [&](const std::function<void(Program*)>& change) {
    Program candidate = program;
    change(&candidate);
    if (fails(candidate)) program = std::move(candidate);
  };
  try_value([](Program* p) { p->conf.clear(); });
  try_value([](Program* p) { p->fraction.reset(); });
  try_value([](Program* p) { p->total = GiB(80); });
  try_value([](Program* p) { p->explicit_completion = false; });
  for (size_t i = 0; i < program.steps.size(); ++i) {
    if (program.steps[i].kind != EventKind::kAlloc) continue;
    for (const uint64_t size : {uint64_t{512}, uint64_t{1} << 20, uint64_t{20} << 20}) {
      if (program.steps[i].size == size) break;
      try_value([&](Program* p) { p->steps[i].size = size; });
      if (program.steps[i].size == size) break;
    }
    try_value([&](Program* p) { p->steps[i].stream = 0; });
  }
  return program;
}

std::string ProgramText(const Program& program) {
  StringSink sink;
  const absl::Status status = WriteFlatJsonl(ToTrace(program), sink);
  return status.ok() ? sink.text() : std::string(status.message());
}

}  // namespace memreplay
