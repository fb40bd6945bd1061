#include "experiment/patch.h"

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>
#include <system_error>
#include <tuple>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "trace/value/status_macros.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

namespace fs = std::filesystem;

constexpr size_t kContext = 3;  // lines around a change

using Lines = std::vector<std::string_view>;  // each with its end

// A change of lines [begin, end) of a file, in whole lines.
struct LineChange {
  size_t begin = 0;
  size_t end = 0;
  std::string text;
};

Lines LinesOf(std::string_view text) {
  Lines lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
    lines.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
  return lines;
}

bool Inserts(const proto::Edit& edit) { return edit.begin() == edit.end(); }

// Returns whether an edit inserts "name=value".
bool IsArgument(const proto::Edit& edit) {
  const std::string_view text = edit.text();
  const size_t end = text.find('=');
  return Inserts(edit) && end != 0 && end != text.npos &&
         std::all_of(text.begin(), text.begin() + end,
                     [](char c) { return c == '_' || absl::ascii_isalnum(c); });
}

// A file's text with the places where its lines begin.
class LineText {
 public:
  explicit LineText(std::string_view text) : text_(text), lines_(LinesOf(text)) {
    size_t at = 0;
    for (const std::string_view line : lines_) {
      begins_.push_back(at);
      at += line.size();
    }
    begins_.push_back(at);
  }

  const Lines& lines() const { return lines_; }

  // Returns the changes of lines that edits of this file make; between two is a line that stays.
  std::vector<LineChange> Changes(absl::Span<const proto::Edit> edits) const {
    std::vector<LineChange> changes;
    for (size_t i = 0; i < edits.size();) {
      const size_t first = i;
      LineChange change{LineOf(Begin(edits[i])), EndOf(edits[i]), ""};
      while (++i < edits.size() && LineOf(Begin(edits[i])) <= change.end) {
        change.end = std::max(change.end, EndOf(edits[i]));
      }
      change.text = Edited(change, edits.subspan(first, i - first));
      Trim(&change);
      if (change.begin < change.end || !change.text.empty()) changes.push_back(std::move(change));
    }
    return changes;
  }

 private:
  static size_t Begin(const proto::Edit& edit) { return static_cast<size_t>(edit.begin()); }

  // Returns the line that has the byte at a place; at the end of the text it is the last one if
  // that is not ended, else the number of lines.
  size_t LineOf(size_t at) const {
    if (at == text_.size() && !lines_.empty() && lines_.back().back() != '\n') --at;
    const auto after = std::upper_bound(begins_.begin(), begins_.end(), at);
    return std::min(static_cast<size_t>(after - begins_.begin()) - 1, lines_.size());
  }

  // Returns the line behind those that an edit changes. A line that loses its end takes the next
  // one with it; whole lines that are inserted take none.
  size_t EndOf(const proto::Edit& edit) const {
    const auto end = static_cast<size_t>(edit.end());
    const size_t line = LineOf(end);
    const bool is_at_begin = begins_[line] == end;
    const bool keeps_ends = edit.text().empty() ? begins_[LineOf(Begin(edit))] == Begin(edit)
                                                : edit.text().back() == '\n';
    if (is_at_begin && keeps_ends) return line;
    return std::min(line + 1, lines_.size());
  }

  // Returns the lines of a change with the edits, all of which lie in them.
  std::string Edited(const LineChange& change, absl::Span<const proto::Edit> edits) const {
    std::string text;
    size_t at = begins_[change.begin];
    for (const proto::Edit& edit : edits) {
      StrAppend(&text, text_.substr(at, Begin(edit) - at), edit.text());
      at = static_cast<size_t>(edit.end());
    }
    StrAppend(&text, text_.substr(at, begins_[change.end] - at));
    return text;
  }

  // Takes equal lines at both ends out of a change.
  void Trim(LineChange* change) const {
    Lines made = LinesOf(change->text);
    size_t front = 0;
    while (change->begin < change->end && front < made.size() &&
           made[front] == lines_[change->begin]) {
      ++front;
      ++change->begin;
    }
    size_t back = made.size();
    while (change->begin < change->end && back > front &&
           made[back - 1] == lines_[change->end - 1]) {
      --back;
      --change->end;
    }
    std::string kept;
    for (size_t i = front; i < back; ++i) StrAppend(&kept, made[i]);
    change->text = std::move(kept);
  }

  std::string_view text_;
  Lines lines_;
  std::vector<size_t> begins_;  // of each line, and the end of the text
};

void AddLine(char sign, std::string_view line, std::string* hunk) {
  StrAppend(hunk, std::string(1, sign), line);
  if (line.empty() || line.back() != '\n') StrAppend(hunk, "\n\\ No newline at end of file\n");
}

// "12,5": `count` lines that begin behind `before` others, as diff writes it.
std::string RangeOf(size_t before, size_t count) {
  return StrCat(count == 0 ? before : before + 1, count == 1 ? "" : StrCat(",", count));
}

// Returns the hunks of a unified diff.
std::string HunksOf(const Lines& lines, const std::vector<LineChange>& changes) {
  std::string text;
  size_t added = 0, removed = 0;  // by the hunks so far
  for (size_t i = 0; i < changes.size();) {
    const size_t begin = changes[i].begin - std::min(changes[i].begin, kContext);
    const size_t added_before = added, removed_before = removed;
    std::string hunk;
    size_t at = begin;
    do {
      const LineChange& change = changes[i];
      for (; at < change.begin; ++at) AddLine(' ', lines[at], &hunk);
      for (; at < change.end; ++at, ++removed) AddLine('-', lines[at], &hunk);
      const Lines made = LinesOf(change.text);
      for (const std::string_view line : made) AddLine('+', line, &hunk);
      added += made.size();
    } while (++i < changes.size() && changes[i].begin <= at + 2 * kContext);
    const size_t end = std::min(at + kContext, lines.size());
    for (; at < end; ++at) AddLine(' ', lines[at], &hunk);
    const size_t count = end - begin;
    StrAppend(&text, "@@ -", RangeOf(begin, count), " +",
              RangeOf(begin + added_before - removed_before,
                      count + (added - added_before) - (removed - removed_before)),
              " @@\n", hunk);
  }
  return text;
}

// Returns the name of a file in a folder; "" if it is not in it.
fs::path NameIn(const fs::path& folder, const std::string& path) {
  std::error_code error;
  const fs::path name = fs::weakly_canonical(path, error).lexically_relative(folder);
  return error || name.empty() || *name.begin() == ".." ? fs::path() : name;
}

// Returns the root of the repository that a folder is in; "" if there is none.
fs::path RepositoryOf(fs::path folder) {
  std::error_code error;
  while (!fs::exists(folder / ".git", error)) {
    if (!folder.has_relative_path()) return {};
    folder = folder.parent_path();
  }
  return folder;
}

absl::StatusOr<std::string> DiffOf(absl::Span<const proto::Edit> edits, const fs::path& folder) {
  const std::string& path = edits[0].file();
  const fs::path name = NameIn(folder, path);
  std::ifstream file(path, std::ios::binary);
  if (!file) return absl::NotFoundError(StrCat(path, " cannot be read"));
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (static_cast<size_t>(edits.back().end()) > text.size()) {
    return absl::FailedPreconditionError(StrCat(path, " was changed meanwhile"));
  }
  const LineText lines(text);
  const std::string hunks = HunksOf(lines.lines(), lines.Changes(edits));
  if (hunks.empty()) return std::string();
  return StrCat("--- a/", name.string(), "\n+++ b/", name.string(), "\n", hunks);
}

}  // namespace

absl::StatusOr<std::vector<proto::Edit>> MergeEdits(std::vector<proto::Edit> edits) {
  // What is inserted in whole lines stands in front of what is inserted into the line.
  const auto key = [](const proto::Edit& edit) {
    const bool is_line =
        Inserts(edit) && edit.text().ends_with('\n') && edit.text().find_first_of("\r\n") > 0;
    return std::make_tuple(std::string_view(edit.file()), edit.begin(), Inserts(edit) ? 0 : 1,
                           is_line ? 0 : 1);
  };
  std::stable_sort(edits.begin(), edits.end(),
                   [&](const auto& a, const auto& b) { return key(a) < key(b); });
  std::vector<proto::Edit> merged;
  for (proto::Edit& edit : edits) {
    const auto same = [&](const proto::Edit& other) {
      return other.file() == edit.file() && other.begin() == edit.begin() &&
             other.end() == edit.end() && other.text() == edit.text();
    };
    if (absl::c_any_of(merged, same)) continue;
    if (!merged.empty() && merged.back().file() == edit.file() && IsArgument(edit) &&
        IsArgument(merged.back()) && merged.back().begin() == edit.begin()) {  // of an empty call
      edit.set_text(StrCat(", ", edit.text()));
    }
    if (!merged.empty() && merged.back().file() == edit.file() &&
        edit.begin() < merged.back().end()) {
      return absl::InvalidArgumentError("they change the same words of the script");
    }
    merged.push_back(std::move(edit));
  }
  return merged;
}

absl::StatusOr<Patch> PatchOf(absl::Span<const proto::Edit> edits, const std::string& folder) {
  std::error_code error;
  fs::path root = fs::canonical(folder, error);
  if (error) return absl::NotFoundError(StrCat(folder, ": ", error.message()));
  Patch patch;
  const auto outside = [&] {
    return absl::c_find_if(edits,
                           [&](const auto& edit) { return NameIn(root, edit.file()).empty(); });
  };
  if (outside() != edits.end()) {
    if (const fs::path repository = RepositoryOf(root); !repository.empty()) root = repository;
    patch.folder = root.string();
  }
  if (const auto edit = outside(); edit != edits.end()) {
    return absl::InvalidArgumentError(StrCat(
        edit->file(), " is neither in the script's folder nor in its repository, ", patch.folder));
  }
  for (size_t i = 0; i < edits.size();) {
    const size_t first = i;
    while (i < edits.size() && edits[i].file() == edits[first].file()) ++i;
    ASSIGN_OR_RETURN(const std::string diff, DiffOf(edits.subspan(first, i - first), root));
    patch.text += diff;
  }
  return patch;
}

std::string FolderOfScript(const std::vector<std::string>& program) {
  for (const std::string& word : program) {
    std::error_code error;
    if (!word.ends_with(".py") || !fs::is_regular_file(word, error)) continue;
    return fs::absolute(word, error).parent_path().string();
  }
  return ".";
}

}  // namespace memreplay
