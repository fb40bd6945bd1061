// Consumes the events of a run, or of a recording, in order.
#ifndef MEMREPLAY_SIM_MODEL_OBSERVER_H_
#define MEMREPLAY_SIM_MODEL_OBSERVER_H_

#include <initializer_list>
#include <vector>

#include "trace/value/event.h"

namespace memreplay {

class Observer {
 public:
  virtual ~Observer() = default;
  // Called once per event, in the order PyTorch would write its trace. A
  // request that PyTorch does not record (kMark, kEmptyCache, kRecordStream
  // ...) is passed on before its effects.
  virtual void OnEvent(const Event& event) = 0;
};

// Passes each event to several observers, in the order given. Does not own them.
class ObserverList final : public Observer {
 public:
  ObserverList() = default;
  ObserverList(std::initializer_list<Observer*> observers) : observers_(observers) {}
  void Add(Observer* observer) { observers_.push_back(observer); }
  void OnEvent(const Event& event) override {
    for (Observer* observer : observers_) observer->OnEvent(event);
  }

 private:
  std::vector<Observer*> observers_;
};

}  // namespace memreplay

#endif  // MEMREPLAY_SIM_MODEL_OBSERVER_H_
