// An observer watches a run, or a recording, from start to end.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <vector>

#include "trace/value/event.h"
#include "trace/value/memory_state.h"

namespace memreplay {

class Allocator;

// An object that receives the start of a run, each request, every event and the end.
class Observer {
 public:
  virtual ~Observer() = default;
  // Which calls an observer receives between the start and the end. A run reads this once, before
  // it starts.
  struct Needs {
    bool requests = true;  // OnRequest()
    bool events = true;    // OnEvent()
  };
  virtual Needs needs() const { return {}; }
  // Called before OnStart() once for each event that allocates again what was live when the
  // recording began.
  virtual void OnStartEvent(const Event& /*event*/) {}
  // Called when the run begins. `state` is what was restored before the first request, with the
  // addresses of this run, in addition to what OnStartEvent() reported. `allocator` contains all of
  // it and stays valid until OnEnd() returns.
  virtual void OnStart(const MemoryState& /*state*/, const Allocator& /*allocator*/) {}
  // Called before the request with this index in Schedule::requests() is applied.
  virtual void OnRequest(size_t /*request*/) {}
  // Called once per event, in the order PyTorch would write its trace. A request that PyTorch does
  // not record (kMark, kEmptyCache, kRecordStream ...) precedes its effects.
  virtual void OnEvent(const Event& event) = 0;
  // Called after the last request, while everything is still allocated.
  virtual void OnEnd() {}
};

// An observer that passes everything to several observers in the given order. It does not own them.
class ObserverList final : public Observer {
 public:
  ObserverList() = default;
  // Ignores null pointers.
  ObserverList(std::initializer_list<Observer*> observers) {
    for (Observer* observer : observers) Add(observer);
  }
  void Add(Observer* observer) {
    if (observer == nullptr) return;
    observers_.push_back(observer);
    const Needs needs = observer->needs();
    if (needs.requests) of_requests_.push_back(observer);
    if (needs.events) of_events_.push_back(observer);
  }
  size_t size() const { return observers_.size(); }
  Needs needs() const override { return {!of_requests_.empty(), !of_events_.empty()}; }
  void OnStartEvent(const Event& event) override {
    for (Observer* observer : observers_) observer->OnStartEvent(event);
  }
  void OnStart(const MemoryState& state, const Allocator& allocator) override {
    for (Observer* observer : observers_) observer->OnStart(state, allocator);
  }
  void OnRequest(size_t request) override {
    for (Observer* observer : of_requests_) observer->OnRequest(request);
  }
  void OnEvent(const Event& event) override {
    for (Observer* observer : of_events_) observer->OnEvent(event);
  }
  void OnEnd() override {
    for (Observer* observer : observers_) observer->OnEnd();
  }

 private:
  std::vector<Observer*> observers_;
  std::vector<Observer*> of_requests_;
  std::vector<Observer*> of_events_;
};

// Several observers of final classes, called in the given order without virtual calls. It does not
// own them.
template <typename... Parts>
class ObserversTogether final : public Observer {  // of none
 public:
  Needs needs() const override { return {.requests = false, .events = false}; }
  void OnEvent(const Event& /*event*/) override {}
};

// The same with at least one observer.
template <typename First, typename... Others>
class ObserversTogether<First, Others...> final : public Observer {
 public:
  explicit ObserversTogether(First& first, Others&... others) : first_(first), others_(others...) {}
  Needs needs() const override {
    const Needs first = first_.needs(), others = others_.needs();
    return {first.requests || others.requests, first.events || others.events};
  }
  void OnStartEvent(const Event& event) override {
    first_.OnStartEvent(event);
    others_.OnStartEvent(event);
  }
  void OnStart(const MemoryState& state, const Allocator& allocator) override {
    first_.OnStart(state, allocator);
    others_.OnStart(state, allocator);
  }
  [[gnu::always_inline]] void OnRequest(size_t request) override {
    first_.OnRequest(request);
    others_.OnRequest(request);
  }
  [[gnu::always_inline]] void OnEvent(const Event& event) override {
    first_.OnEvent(event);
    others_.OnEvent(event);
  }
  void OnEnd() override {
    first_.OnEnd();
    others_.OnEnd();
  }

 private:
  First& first_;
  ObserversTogether<Others...> others_;
};

template <typename... Parts>
ObserversTogether(Parts&...) -> ObserversTogether<Parts...>;

}  // namespace memreplay
