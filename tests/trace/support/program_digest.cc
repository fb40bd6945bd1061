#include "tests/trace/support/program_digest.h"

#include <algorithm>
#include <map>
#include <string_view>

#include "trace/value/strings.h"

namespace memreplay::synth {
namespace {

bool IsPhase(const Event& event) { return event.is_mark(MarkKind::kPhase); }

bool IsVisible(const Trace& program, const Event& event) {
  const auto frames = program.stacks[event.text_or_stack];
  const std::string_view tag = program.strings[program.stacks.frame(frames[0]).filename];
  return event.size > Bytes(16) && tag != "workspace";
}

std::vector<std::string> InstantsOf(const Trace& program, bool all) {
  std::vector<std::string> lines;
  std::map<uint64_t, uint64_t> ordinals;  // by handle
  std::vector<uint64_t> freed;
  uint64_t next = 0;
  const auto finish_instant = [&] {
    if (freed.empty()) return;
    std::sort(freed.begin(), freed.end());
    std::string line = "F";
    for (const uint64_t ordinal : freed) StrAppend(&line, " ", ordinal);
    lines.push_back(line);
    freed.clear();
  };
  for (const Event& event : program.devices.at(0).events) {
    if (event.kind == EventKind::kFree) {
      const auto ordinal = ordinals.find(event.address.value());
      if (ordinal != ordinals.end()) freed.push_back(ordinal->second);
    } else if (event.kind == EventKind::kAlloc) {
      if (!all && !IsVisible(program, event)) continue;
      finish_instant();
      ordinals[event.address.value()] = next++;
      lines.push_back(StrCat("A ", event.size.value()));
    } else if (IsPhase(event)) {
      finish_instant();
      lines.push_back(StrCat("P ", program.strings[event.text_or_stack]));
    }
  }
  finish_instant();
  return lines;
}

}  // namespace

std::vector<std::string> Instants(const Trace& program) { return InstantsOf(program, true); }

std::vector<std::string> VisibleInstants(const Trace& program) {
  return InstantsOf(program, false);
}

uint64_t Digest(const std::vector<std::string>& lines) {
  uint64_t hash = 14695981039346656037u;
  const auto add = [&hash](unsigned char byte) { hash = (hash ^ byte) * 1099511628211u; };
  for (const std::string& line : lines) {
    for (const char c : line) add(static_cast<unsigned char>(c));
    add('\n');
  }
  return hash;
}

std::vector<std::pair<std::string, uint64_t>> PhasePeaks(const Trace& program) {
  std::vector<std::pair<std::string, uint64_t>> peaks;
  std::map<uint64_t, uint64_t> live;
  uint64_t allocated = 0;
  for (const Event& event : program.devices.at(0).events) {
    if (event.kind == EventKind::kAlloc) {
      const uint64_t block = (event.size.value() + 511) / 512 * 512;
      live[event.address.value()] = block;
      allocated += block;
    } else if (event.kind == EventKind::kFree) {
      allocated -= live.at(event.address.value());
    } else if (IsPhase(event)) {
      peaks.emplace_back(std::string(program.strings[event.text_or_stack]), allocated);
    }
    if (!peaks.empty()) peaks.back().second = std::max(peaks.back().second, allocated);
  }
  return peaks;
}

}  // namespace memreplay::synth
