// Renders reports as text for a terminal. The first lines are the answer; sizes have binary units.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "proto/record.pb.h"
#include "proto/report.pb.h"
#include "proto/schedule.pb.h"
#include "report/table/table.h"
#include "report/words/lines.h"

namespace memreplay {

// Returns the answers about all devices, and the details of each. Peaks also have their exact
// bytes.
Text RenderText(const proto::Report& report);

// Returns the ranks of a job, or several files, side by side; "" for fewer than two rows.
Text RenderJobText(const proto::Job& job);

// Returns which settings suit all recordings of a job, the first `shown` of them.
std::string RenderTogether(const proto::Together& together, size_t shown);

// Returns the comparison of two files or two reports.
Text RenderDiffText(const proto::Diff& diff);

// Returns one line for each finding about a settings string, errors first.
std::string RenderLintText(const proto::Lint& lint);

// Returns the explanation of an error text: its first line says what happened and what to do first;
// what to do next, why, and what the error text contains follow.
std::string RenderExplanationText(const proto::Explanation& explanation);

// Returns what `memreplay advise` found. `what` is the script with its arguments, or the file.
// `caveats` say why its figures are uncertain or lower bounds.
std::string RenderAdvice(std::string_view what, const proto::Advice& advice,
                         const std::vector<Line>& caveats = {});

// Returns which of several GPUs a script fits, and with which change.
std::string RenderCardChoice(std::string_view what, const proto::CardChoice& choice);

// Returns what `memreplay record` did.
Text RenderRecord(const proto::RecordReport& report);

// Return what `memreplay fit script` and `sweep script` found.
std::string RenderScriptFit(const proto::ScriptReport& report);
std::string RenderScriptSweep(const proto::ScriptReport& report);

// Returns the largest batch (or sequence, or number of layers) that fits, with what was tried.
std::string RenderLargestFit(const proto::Report& report);

// Returns what a training run would need: by category at the peak, and by phase.
std::string RenderPrediction(const proto::Report& report);

// Return what a schedule requests as a whole. Names of phases may be any bytes; JSON shows them as
// text.
std::string RenderProgramCheck(const proto::ProgramCheck& check);
std::string RenderProgramCheckJson(proto::ProgramCheck check);

// Returns one line for each GPU (hardware/cards.h), by group: its name, its memory on Linux and on
// Windows, capability, multiprocessors and the source of the memory figures.
std::string RenderCards();
// Returns a JSON array of everything in the table.
std::string CardsJson();

// --- Parts of RenderText(). ---

// Appends a table; nothing if it has no rows. A title has an empty line in front of it.
void AddTable(const Table& table, Text* out);
void AddTable(const Table& table, std::string* out);

// Returns what is confirmed, or where prediction and device first differ, and the table of both;
// then the details. `device` has `gpu`.
Text RenderGpu(const proto::DeviceReport& device);

// Return everything to be said about one device.
Text RenderSweep(const proto::DeviceReport& device);
Text RenderFits(const proto::DeviceReport& device);
// Returns why settings reserve so much, in a sentence; "" if little is unused.
std::string CauseSentence(const proto::SweepRow& row);

// Appends why memory ran out on a device, and what would have helped. `device` has `oom` with a
// verdict other than `none`.
void RenderOom(const proto::DeviceReport& device, Text* answer);

// Returns memory over the run in a few lines; "" if the report does not have it.
std::string RenderTimelineText(const proto::DeviceReport& device);
// Returns the steps of the loop and what they leave behind.
std::string RenderLoopText(const proto::DeviceReport& device);

// Returns the table by phase, the evidence, the tree of modules; "" if nothing was ever live, or if
// nothing is known about it.
std::string RenderCategories(const proto::Categories& categories);

// Appends a section of what was live, under `title`; does nothing if no stack is known.
void RenderHeld(const proto::Held& held, std::string_view title, std::string* out);

}  // namespace memreplay
