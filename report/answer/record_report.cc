#include "report/answer/record_report.h"

#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <string>
#include <vector>

#include "report/words/sizes.h"
#include "report/words/text.h"
#include "report/words/verdict.h"
#include "trace/value/strings.h"

namespace memreplay {

absl::StatusOr<proto::RecordedProcess> ParseRecordedProcess(std::string_view json) {
  proto::RecordedProcess process;
  google::protobuf::util::JsonParseOptions options;
  options.ignore_unknown_fields = true;
  const auto status =
      google::protobuf::util::JsonStringToMessage(std::string(json), &process, options);
  if (!status.ok()) {
    return absl::InvalidArgumentError(
        StrCat("expected the summary of a process: ", std::string(status.message())));
  }
  for (int i = 0; i < process.cards_size(); ++i) {
    proto::RecordedCard& card = *process.mutable_cards(i);
    process.set_ooms(process.ooms() + card.ooms());
    const int64_t used =
        i < process.card().cards_size() ? process.card().cards(i).peak_used() : int64_t{0};
    card.set_besides(std::max<int64_t>(used - card.peak_reserved(), 0));
    card.set_spare(card.capacity() - process.card().reserve() - card.peak_reserved() -
                   card.besides());
  }
  if (process.rank() >= 0) process.set_name(StrCat("rank ", process.rank()));
  return process;
}

proto::RecordedReplay RecordedReplayOf(const Trace& trace, StackNames& names, size_t device_index,
                                       const proto::DeviceReport& device) {
  proto::RecordedReplay replay;
  replay.set_device(device.device());
  replay.set_events(device.events());
  replay.set_agrees(FindFaults(device).empty());
  replay.set_sentence(FidelitySentence(device));
  replay.set_peak_reserved(device.peak_reserved_bytes());
  replay.set_peak_allocated(device.peak_allocated_bytes());
  replay.set_ooms(device.ooms());
  for (const std::string& note : device.notes()) replay.add_notes(note);
  const EventList& events = trace.devices[device_index].events;
  const int64_t at = device.recorded().peak_reserved_event();
  if (at < 0 || static_cast<size_t>(at) >= events.size()) return replay;
  const auto has_stack = [&](int64_t i) {
    return !HasText(events[i].kind) && events[i].text_or_stack != kNoStack;
  };
  int64_t known = at;
  while (known >= 0 && !has_stack(known)) --known;
  if (known < 0) return replay;
  const std::string& label = names.Label(events[known].text_or_stack);
  if (known == at) {
    replay.set_peak_stack(label);
  } else {
    replay.set_stack_before(label);
    replay.set_events_since(at - known);
  }
  return replay;
}

void FindRecordFaults(proto::RecordReport* report) {
  report->clear_faults();
  for (const proto::RecordedProcess& process : report->processes()) {
    const std::string name = process.name().empty() ? std::string() : StrCat(process.name(), ": ");
    if (process.ooms() > 0) {
      report->add_faults(StrCat(name, "memory ran out ", FormatCount(process.ooms(), "time")));
    }
    if (!process.error().empty()) {
      report->add_faults(
          StrCat(name, CleanText(process.error()), ": ",
                 CleanText(process.error_text().substr(0, process.error_text().find('\n')))));
    }
    for (const proto::RecordedReplay& replay : process.replays()) {
      if (!replay.agrees()) {
        report->add_faults(
            StrCat(name, "device ", replay.device(), ": ", CleanText(replay.sentence())));
      }
    }
  }
  if (report->exit_status() != 0 && report->faults().empty()) {
    report->add_faults(StrCat("the program ended with status ", report->exit_status()));
  }
}

}  // namespace memreplay
