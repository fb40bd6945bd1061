#include "report/ask/inspect.h"

#include "report/device/categories.h"
#include "report/device/device_report.h"
#include "report/device/loop.h"
#include "report/words/stack_names.h"
#include "sim/recording/replay_settings.h"
#include "trace/value/status_macros.h"

namespace memreplay {

absl::StatusOr<proto::DeviceReport> AskInspect(const Study& study,
                                               const InspectQuestion& question) {
  const Trace& trace = study.trace();
  StackNames names(trace);
  proto::DeviceReport report = ReportContents(trace, study.device_index(), study.settings().torch);
  if (trace.devices[study.device_index()].has_final_state) {
    *report.mutable_held_at_end() = HeldAtEnd(trace, study.device_index(), names, question.held);
  }
  if (IsOfNpu(trace)) report.add_notes(std::string(kNpuNote));
  if (question.deep)
    study.schedule();  // otherwise it would be built a second time for categories alone
  AddCategories(study, names, &report);
  if (!question.deep) return report;
  RETURN_IF_ERROR(AskLoop(study, names, &report));
  *report.mutable_held_at_peak() = HeldAtPeak(study.schedule(), names, question.held);
  return report;
}

}  // namespace memreplay
