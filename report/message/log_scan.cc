#include "report/message/log_scan.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <utility>

#include "absl/algorithm/container.h"
#include "report/message/passage.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

constexpr size_t kBefore = size_t{48} << 10;
constexpr size_t kAfter = size_t{48} << 10;
constexpr size_t kStep = size_t{1} << 20;
constexpr size_t kLookAhead = 512;  // more than an anchor and its surroundings
constexpr size_t kHead = size_t{16} << 10;
constexpr size_t kContextBefore = 100;
constexpr size_t kContextAfter = 300;
constexpr size_t kAnchorBehind = 60;
// If a process is killed or a library gives up this close to a failure with figures, that is its
// consequence, or the same failure repeated.
constexpr uint64_t kOneFailure = uint64_t{256} << 10;
constexpr size_t kPlacesAStep = 8;  // of one word that are examined
constexpr size_t kMaxSeen = 4096;
constexpr int64_t kMaxCompared = 1000000;
constexpr size_t kComparedText = 96;
constexpr std::string_view kCounted = "ried to allocate";
constexpr std::string_view kWords = "ut of memory";

// Returns the words to search for: each anchor once, then the context's.
std::vector<std::string_view> Words() {
  std::vector<std::string_view> words;
  for (const Form& form : Forms()) {
    if (form.anchor.size() >= kShortestAnchor && absl::c_find(words, form.anchor) == words.end()) {
      words.push_back(form.anchor);
    }
  }
  for (const std::string_view word : ContextAnchors()) words.push_back(word);
  return words;
}

size_t AnchorCount() { return Words().size() - ContextAnchors().size(); }

// Words in a line before "out of memory" that make it a possibility, and words near it without
// which it is no failure.
constexpr std::string_view kIfs[] = {"f you ",     " may ",    " might ", "avoid ", "revent ",
                                     "n case of ", "hen you ", "ow to ",  "hints ", "hat to do "};
constexpr std::string_view kFailed[] = {"rror", "ail",   "xception", "bort",
                                        "atal", "illed", "annot",    "ERR"};

// Returns whether what stands at a place did not happen: "If you run out of memory, try --tile".
bool IsHypothetical(std::string_view text, size_t at, const Passage& near) {
  const std::string_view before =
      text.substr(at - std::min(at, kContextBefore), std::min(at, kContextBefore));
  const std::string_view line = before.substr(before.rfind('\n') + 1);
  return near.text.find("notafailure") != std::string::npos ||
         absl::c_any_of(kIfs, [&](std::string_view word) {
           return line.find(word) != std::string_view::npos;
         });
}

// Returns the row for `word` at `at`; null if there is none. If a line is broken within an anchor,
// the words before it stand for it.
const Form* FormAt(std::string_view text, size_t at, std::string_view word) {
  const Passage near = PassageAround(text, at, kNearBefore, kNearAfter);
  if (word == kWords && IsHypothetical(text, at, near)) return nullptr;
  for (const Form& form : Forms()) {
    if (form.anchor == word) {
      if (near.text.find(WithoutBlanks(form.near)) == std::string::npos) continue;
      const bool failed = absl::c_any_of(kFailed, [&](std::string_view failure) {
        return near.text.find(failure) != std::string::npos;
      });
      if (form.kind == FormKind::kNone || (form.kind == FormKind::kMention && !failed))
        return nullptr;
      return &form;
    } else if (form.near.find(word) != std::string_view::npos) {
      const std::string anchor = WithoutBlanks(form.anchor);
      const size_t found = near.text.find(anchor, near.at);
      if (found < near.at + kAnchorBehind &&
          near.text.find(WithoutBlanks(form.near)) != std::string::npos) {
        return &form;
      }
    }
  }
  return nullptr;
}

// Returns the line at `at`, with the ones before and after it: they show whether it was broken.
std::string_view LineAround(std::string_view text, size_t at) {
  size_t begin = at;
  for (int lines = 0; lines < 2 && begin > 0; ++lines) {
    begin = text.rfind('\n', begin - 1) + 1;  // 0 if there is none
    begin = begin > 0 && lines == 0 ? begin - 1 : begin;
  }
  begin = std::max(begin, at - std::min(at, kContextAfter));
  const size_t end = text.find('\n', std::min(text.find('\n', at), text.size()) + 1);
  return text.substr(begin, std::min(end, at + kContextAfter) - begin);
}

// Finds the last line that is a short anchor, as a shell prints "Killed".
bool FindBare(std::string_view text, const Form** form, uint64_t* at) {
  for (const Form& row : Forms()) {
    if (row.anchor.size() >= kShortestAnchor) continue;
    for (size_t found = text.rfind(row.anchor); found != std::string_view::npos;
         found = found == 0 ? std::string_view::npos : text.rfind(row.anchor, found - 1)) {
      const size_t end = found + row.anchor.size();
      if ((found > 0 && text[found - 1] != '\n') ||
          (end < text.size() && text[end] != '\n' && text[end] != '\r')) {
        continue;
      }
      *form = &row;
      *at = found;
      return true;
    }
  }
  return false;
}

}  // namespace

LogScan::LogScan() : words_(Words()), search_(words_), context_lines_(ContextAnchors().size()) {}

void LogScan::Add(std::string_view piece) {
  if (!knows_encoding_ && !piece.empty()) {
    knows_encoding_ = true;
    is_little_ = piece.starts_with("\xff\xfe");
    is_utf16_ = is_little_ || piece.starts_with("\xfe\xff");
  }
  if (is_utf16_) {
    half_ += piece;
    const std::string text = FromUtf16(half_, is_little_);
    half_ = half_.substr(half_.size() / 2 * 2);
    AddText(text);
  } else {
    AddText(piece);
  }
}

void LogScan::AddText(std::string_view piece) {
  if (head_.size() < kHead) head_ += piece.substr(0, kHead - head_.size());
  while (!piece.empty()) {
    const size_t room = kBefore + kStep - std::min(kBefore + kStep, buffer_.size());
    const size_t taken = std::min(piece.size(), room);
    buffer_ += piece.substr(0, taken);
    piece.remove_prefix(taken);
    if (buffer_.size() < kBefore + kStep) return;
    Scan(false);
    const size_t gone = buffer_.size() - kBefore;
    buffer_.erase(0, gone);
    buffer_begin_ += gone;
    scanned_ = scanned_ > gone ? scanned_ - gone : 0;
  }
}

void LogScan::Count(std::string_view text, size_t at) {
  const std::string_view before =
      text.substr(at - std::min(at, kContextBefore), std::min(at, kContextBefore));
  if (before.substr(before.rfind('\n') + 1).starts_with("  PROBLEM: ")) return;  // our own answer
  if (++failures_ < kMaxCompared && seen_.size() < kMaxSeen) {
    seen_.insert(std::hash<std::string_view>()(text.substr(at, kComparedText)));
  }
}

void LogScan::Scan(bool is_last) {
  const std::string_view text = buffer_;
  // Append what the window of a place in an earlier step lacks.
  for (Kept& kept : kept_) {
    const uint64_t end = kept.begin + kept.window.size();
    if (kept.form == nullptr || kept.at + kAfter <= end || end < buffer_begin_) continue;
    kept.window += text.substr(end - buffer_begin_, kept.at + kAfter - end);
  }
  // What follows may decide the meaning of a place at the end.
  const size_t end = is_last ? text.size() : text.size() - std::min(text.size(), kLookAhead);
  const size_t begin = std::min(scanned_, end);
  scanned_ = end;
  std::vector<std::vector<size_t>> places(words_.size());
  const size_t anchors = AnchorCount();
  search_.Find(text.substr(begin), [&](size_t offset, size_t word) {
    const size_t at = begin + offset;
    if (at >= end) return;
    if (words_[word] == kCounted) Count(text, at);
    std::vector<size_t>& own = places[word];
    if (own.size() == kPlacesAStep) own.erase(own.begin());
    own.push_back(at);
  });
  for (size_t word = 0; word < places.size(); ++word) {
    if (word >= anchors) {
      if (!places[word].empty()) {
        context_lines_[word - anchors] = LineAround(text, places[word].back());
      }
      continue;
    }
    for (const size_t at : places[word]) {
      const Form* form = FormAt(text, at, words_[word]);
      if (form == nullptr) continue;
      Kept& kept = kept_[static_cast<size_t>(form->strength)];
      if (kept.form != nullptr && kept.at >= buffer_begin_ + at) continue;
      const size_t first = at - std::min(at, kBefore);
      kept.form = form;
      kept.at = buffer_begin_ + at;
      kept.begin = buffer_begin_ + first;
      kept.window = text.substr(first, at + kAfter - first);
    }
  }
}

LogExtract LogScan::Finish() {
  Scan(true);
  LogExtract extract;
  // Use the last one, or the one near it that says most.
  const Kept* last = nullptr;
  for (size_t strength = 2; strength < kept_.size(); ++strength) {
    const Kept& kept = kept_[strength];
    if (kept.form != nullptr && (last == nullptr || kept.at > last->at)) last = &kept;
  }
  const Kept* chosen = nullptr;
  for (const Kept& kept : kept_) {
    if (kept.form == nullptr) continue;
    if (last == nullptr ? true : kept.at + kOneFailure >= last->at) chosen = &kept;
  }
  Kept bare;
  if (chosen == nullptr && FindBare(buffer_, &bare.form, &bare.at)) {
    bare.window = buffer_;
    chosen = &bare;
  }
  // An index out of range, say, ends the GPU's work, and cuBLAS with it; and where NCCL says what
  // failed, that it was memory is a form of its own.
  const auto has = [&](const char* words) {
    return chosen->window.find(words) != std::string::npos;
  };
  if (chosen != nullptr && chosen->form->kind == FormKind::kLibrary &&
      (has("Assertion `") || (chosen->form->strength < 4 && has("Cuda failure ")))) {
    chosen = nullptr;
  }
  if (chosen != nullptr) {
    extract.form = chosen->form;
    extract.window = chosen->window;
    if (!is_utf16_) extract.begin = chosen->begin;
    extract.anchor = static_cast<size_t>(chosen->at - chosen->begin);
  }
  extract.failures = std::max<int64_t>(failures_, chosen != nullptr ? 1 : 0);
  extract.different = std::max<int64_t>(std::ssize(seen_), 1);
  extract.context = std::move(head_);
  for (const std::string& line : context_lines_) {
    if (!line.empty()) StrAppend(&extract.context, "\n", line);
  }
  return extract;
}

WordSearch::WordSearch(const std::vector<std::string_view>& words)
    : words_(words), shifts_(size_t{1} << 16), first_(size_t{1} << 16) {
  shortest_ = std::numeric_limits<uint8_t>::max();
  for (const std::string_view word : words_) shortest_ = std::min(shortest_, word.size());
  std::fill(shifts_.begin(), shifts_.end(), static_cast<uint8_t>(shortest_ - 1));
  for (size_t index = 0; index < words_.size(); ++index) {
    const char* word = words_[index].data();
    for (size_t at = 0; at + 2 <= shortest_; ++at) {
      uint8_t& shift = shifts_[Key(word + at)];
      shift = std::min(shift, static_cast<uint8_t>(shortest_ - 2 - at));
    }
    uint16_t& first = first_[Key(word + shortest_ - 2)];
    if (first == 0) {
      candidates_.emplace_back();
      first = static_cast<uint16_t>(candidates_.size());
    }
    candidates_[first - 1].push_back(index);
  }
}

void WordSearch::Find(std::string_view text,
                      absl::FunctionRef<void(size_t at, size_t word)> found) const {
  for (size_t end = shortest_; end <= text.size();) {
    const size_t key = Key(text.data() + end - 2);
    const size_t shift = shifts_[key];
    if (shift > 0) {
      end += shift;
      continue;
    }
    const size_t at = end - shortest_;
    for (const size_t index : candidates_[first_[key] - 1]) {
      if (text.substr(at, words_[index].size()) == words_[index]) found(at, index);
    }
    ++end;
  }
}

}  // namespace memreplay
