// `memreplay record --json` without the replay, so that a changed line in the allocator's model
// leaves it, and the recordings made by it, as they are. It takes the same words after "record".
#include <cstdio>
#include <string>
#include <vector>

#include "cli/flags/record_flags.h"
#include "record/run_program.h"
#include "report/words/record_faults.h"
#include "report/words/render_json.h"

int main(int argc, char** argv) {
  memreplay::RecordOptions run;
  run.output = "-";
  memreplay::FlagSet flags("[flags] -- PROGRAM [ARGUMENTS]", "");
  flags.AddText("card", "NAME", &run.card, "");
  flags.AddText("out", "FILE", &run.place.out, "");
  flags.AddText("stacks", "WHOSE", &run.stacks, "");
  memreplay::AddRecordFlags(&run, &flags);
  const std::vector<std::string> words(argv + 1, argv + argc);
  const auto fail = [](const absl::Status& status) {
    std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
    return 2;
  };
  absl::StatusOr<std::vector<std::string>> program = flags.ParseLeading(words);
  if (!program.ok()) return fail(program.status());
  run.program = *std::move(program);
  if (const absl::Status call = memreplay::CheckRecordCall(run); !call.ok()) return fail(call);
  absl::StatusOr<memreplay::ScriptRecording> made = memreplay::RunProgram(run);
  if (!made.ok()) return fail(made.status());
  memreplay::proto::RecordReport* const report = &made->report;
  memreplay::FindRecordFaults(&*report);
  std::fputs(memreplay::RenderJson(*report, memreplay::JsonLayout::kIndented).c_str(), stdout);
  return report->faults().empty() ? 0 : 1;
}
