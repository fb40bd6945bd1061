#include "sim/remedy/scaling.h"

#include <algorithm>
#include <map>
#include <string_view>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/numeric/int128.h"
#include "trace/value/status_macros.h"
#include "trace/value/strings.h"

namespace memreplay {
namespace {

constexpr char kInductor[] = "torchinductor_";  // its files are named by a hash of the shapes

std::string_view BaseName(std::string_view path) {
  const size_t slash = path.find_last_of("/\\");
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

// Returns "model.py:55 forward", the innermost line of the script itself; "" if there is none.
std::string LineOf(const Trace& trace, uint32_t stack) {
  std::string inner;
  for (const uint32_t index : trace.stacks[stack]) {
    const Frame& frame = trace.stacks.frame(index);
    const std::string_view file = trace.strings[frame.filename];
    if (!file.ends_with(".py")) continue;
    const bool is_own = file.find("/torch/") == std::string_view::npos;
    if (!is_own && !inner.empty()) continue;
    inner = StrCat(BaseName(file), ":", frame.line, " ", trace.strings[frame.name]);
    if (is_own) break;
  }
  return inner;
}

// Pairs what two recordings number differently; each has one partner.
class Pairs {
 public:
  // Returns whether `a` and `b` are partners, or become so as neither has one.
  bool Match(uint32_t a, uint32_t b) {
    const auto [to, is_new] = to_.emplace(a, b);
    const auto [from, is_new_from] = from_.emplace(b, a);
    return is_new == is_new_from && to->second == b && from->second == a;
  }
  bool Has(uint32_t a) const { return to_.contains(a); }
  bool IsTaken(uint32_t b) const { return from_.contains(b); }
  uint32_t Of(uint32_t a) const {  // kNoAllocation: it has none
    const auto found = to_.find(a);
    return found == to_.end() ? kNoAllocation : found->second;
  }

 private:
  absl::flat_hash_map<uint32_t, uint32_t> to_, from_;
};

// Compares the requests of a recording with those of the first one.
class Correspondence {
 public:
  Correspondence(const RecordedValue& first, const RecordedValue& other)
      : first_(first), other_(other), sizes_(first.schedule->allocation_count()) {}

  // Returns the other recording's sizes by the first one's ids.
  absl::StatusOr<std::vector<Bytes>> Sizes() {
    const std::vector<Event> ours = RequestsOf(first_), theirs = RequestsOf(other_);
    size_t i = 0, j = 0;
    while (i < ours.size() && j < theirs.size()) {
      const size_t frees = FreesAt(ours, i);
      if (frees != FreesAt(theirs, j)) break;
      if (frees == 0 ? !IsSame(ours[i], theirs[j])
                     : !AreSame(absl::MakeConstSpan(ours).subspan(i, frees),
                                absl::MakeConstSpan(theirs).subspan(j, frees))) {
        break;
      }
      i += std::max<size_t>(frees, 1);
      j += std::max<size_t>(frees, 1);
    }
    if (i < ours.size() || j < theirs.size()) {
      // Of two runs of frees, the difference is where the shorter one ends.
      const size_t both = std::min(FreesAt(ours, i), FreesAt(theirs, j));
      if (FreesAt(ours, i) != FreesAt(theirs, j)) {
        i += both;
        j += both;
      }
      return absl::InvalidArgumentError(StrCat(
          first_.name, " and ", other_.name, " do not correspond: ", Describe(first_, ours, i),
          ", ", Describe(other_, theirs, j),
          "; expected recordings of one script that differ in the sizes of allocations "
          "alone"));
    }
    RETURN_IF_ERROR(TakeStarts());
    return std::move(sizes_);
  }

 private:
  // Returns the requests, each with its position in place of an address, without those that depend
  // on time: when another stream is done.
  static std::vector<Event> RequestsOf(const RecordedValue& recording) {
    std::vector<Event> requests;
    const RequestView all = recording.schedule->requests();
    for (size_t i = 0; i < all.size(); ++i) {
      Event request = all[i];
      if (request.kind == EventKind::kStreamDone) continue;
      request.address = Address(i);
      requests.push_back(request);
    }
    return requests;
  }

  static size_t FreesAt(absl::Span<const Event> requests, size_t begin) {
    size_t end = begin;
    while (end < requests.size() && requests[end].kind == EventKind::kFree) ++end;
    return end - begin;
  }

  // Frees in a row have no order: where Python drops a dict, it is that of addresses on the host.
  bool AreSame(absl::Span<const Event> ours, absl::Span<const Event> theirs) {
    absl::flat_hash_set<AllocationId> left;
    for (const Event& free : theirs) left.insert(free.id);
    size_t unknown = 0;  // allocations that were live before the first request
    for (const Event& free : ours) {
      if (ids_.Has(free.id)) {
        if (left.erase(ids_.Of(free.id)) == 0) return false;
      } else {
        ++unknown;
      }
    }
    if (left.size() != unknown) return false;
    size_t at = 0;
    for (const Event& free : ours) {
      if (ids_.Has(free.id)) continue;
      while (at < theirs.size() && !left.contains(theirs[at].id)) ++at;
      if (at == theirs.size() || !ids_.Match(free.id, theirs[at++].id)) return false;
    }
    return true;
  }

  bool IsSame(const Event& a, const Event& b) {
    if (a.kind != b.kind) return false;
    if (a.kind == EventKind::kAlloc) {
      if (!streams_.Match(a.stream, b.stream) || (a.pool == 0) != (b.pool == 0) ||
          !IsSameStack(a.text_or_stack, b.text_or_stack)) {
        return false;
      }
      if (a.id < sizes_.size()) sizes_[a.id] = b.size;
    }
    if (a.id == kNoAllocation || b.id == kNoAllocation) return a.id == b.id;
    return ids_.Match(a.id, b.id);
  }

  bool IsSameStack(uint32_t a, uint32_t b) {
    const auto [known, is_new] = stacks_.emplace(std::pair(a, b), false);
    if (!is_new) return known->second;
    const Trace &ours = first_.schedule->trace(), &theirs = other_.schedule->trace();
    const auto is_same_frame = [&](uint32_t x, uint32_t y) {
      const Frame &f = ours.stacks.frame(x), &g = theirs.stacks.frame(y);
      const std::string_view file = ours.strings[f.filename], other = theirs.strings[g.filename];
      if (file.find(kInductor) != std::string_view::npos) {
        return other.find(kInductor) != std::string_view::npos;
      }
      return f.line == g.line && ours.strings[f.name] == theirs.strings[g.name] &&
             BaseName(file) == BaseName(other);
    };
    const absl::Span<const uint32_t> frames = ours.stacks[a], others = theirs.stacks[b];
    const bool is_same =
        std::equal(frames.begin(), frames.end(), others.begin(), others.end(), is_same_frame);
    stacks_[std::pair(a, b)] = is_same;
    return is_same;
  }

  using Starts = std::map<uint32_t, std::vector<const StartAllocation*>>;  // by stack

  // Returns what was live before the first request and is in no pair; of each stack by size.
  template <typename IsPaired>
  static Starts Unpaired(const Schedule& schedule, const IsPaired& is_paired) {
    Starts starts;
    for (const StartAllocation& start : schedule.start_allocations()) {
      if (!is_paired(start.id)) starts[start.stack].push_back(&start);
    }
    for (auto& [stack, of_stack] : starts) {
      std::stable_sort(of_stack.begin(), of_stack.end(),
                       [](const StartAllocation* a, const StartAllocation* b) {
                         return a->requested_size < b->requested_size;
                       });
    }
    return starts;
  }

  // Takes the sizes of what was live before the first request. Frees have paired some; the others
  // are paired by their stacks, alike ones in the order of the files, and those of one stack by
  // size.
  absl::Status TakeStarts() {
    const auto differ = [&] {
      return absl::InvalidArgumentError(
          StrCat(first_.name, " and ", other_.name,
                 " do not correspond: what was live when they began is not from the same lines; "
                 "expected recordings of one script that began at the same moment"));
    };
    Starts theirs = Unpaired(*other_.schedule, [&](AllocationId id) { return ids_.IsTaken(id); });
    for (const auto& [stack, ours] :
         Unpaired(*first_.schedule, [&](AllocationId id) { return ids_.Has(id); })) {
      const auto same =
          std::find_if(theirs.begin(), theirs.end(),
                       [&, s = stack](const auto& other) { return IsSameStack(s, other.first); });
      if (same == theirs.end() || same->second.size() != ours.size()) return differ();
      for (size_t i = 0; i < ours.size(); ++i) ids_.Match(ours[i]->id, same->second[i]->id);
      theirs.erase(same);
    }
    if (!theirs.empty()) return differ();
    absl::flat_hash_map<AllocationId, Bytes> size_of;
    for (const StartAllocation& start : other_.schedule->start_allocations()) {
      size_of[start.id] = start.requested_size;
    }
    for (const StartAllocation& start : first_.schedule->start_allocations()) {
      const auto size = size_of.find(ids_.Of(start.id));
      if (size == size_of.end()) return differ();  // it was made there
      sizes_[start.id] = size->second;
    }
    return absl::OkStatus();
  }

  // Returns "event 7 of a.pickle is alloc of 512 bytes at model.py:55 forward".
  static std::string Describe(const RecordedValue& recording, absl::Span<const Event> requests,
                              size_t at) {
    if (at >= requests.size()) return StrCat(recording.name, " has ended");
    const Schedule& schedule = *recording.schedule;
    const Event& event = requests[at];
    std::string text = StrCat("event ", EventOfRequest(schedule, event.address.value()), " of ",
                              recording.name, " is ", EventKindName(event.kind));
    if (event.kind != EventKind::kAlloc && event.kind != EventKind::kFree) return text;
    StrAppend(&text, " of ", event.size.value(), " bytes");
    const std::string line = LineOf(schedule.trace(), event.text_or_stack);
    if (!line.empty()) StrAppend(&text, " at ", line);
    return text;
  }

  const RecordedValue& first_;
  const RecordedValue& other_;
  std::vector<Bytes> sizes_;
  Pairs ids_, streams_;
  absl::flat_hash_map<std::pair<uint32_t, uint32_t>, bool> stacks_;
};

absl::Status CheckRecording(const RecordedValue& recording) {
  if (recording.value < 1) {
    return absl::InvalidArgumentError(
        StrCat(recording.name, ": expected a value of at least 1, found ", recording.value));
  }
  if (recording.schedule->device_trace().events.source() != nullptr) {
    return absl::InvalidArgumentError(
        StrCat(recording.name, ": expected a recording, found a schedule that is expanded"));
  }
  const EventView events = recording.schedule->recorded();
  for (size_t i = 0; i < events.size(); ++i) {
    if (events.kind(i) != EventKind::kOom) continue;
    return absl::InvalidArgumentError(StrCat(
        recording.name, ": memory ran out at event ", i,
        "; expected a recording in which it did not, as of a smaller value or a larger GPU"));
  }
  return absl::OkStatus();
}

// The line through two points of an allocation's size, at `value`.
absl::int128 OnLine(const RecordedValue& low, Bytes at_low, const RecordedValue& high,
                    Bytes at_high, int64_t value) {
  const absl::int128 rise =
      absl::int128(at_high.signed_value()) - absl::int128(at_low.signed_value());
  const absl::int128 run = high.value - low.value;
  const absl::int128 more = rise * (absl::int128(value) - low.value);
  // Rounded up.
  const absl::int128 whole = more / run;
  return at_low.signed_value() + whole + (more % run > 0 ? 1 : 0);
}

}  // namespace

absl::StatusOr<Scaling> Scaling::Find(std::vector<RecordedValue> recordings) {
  if (recordings.size() < 2) {
    return absl::InvalidArgumentError(StrCat(
        "expected at least two recordings with different values, found ", recordings.size()));
  }
  Scaling scaling;
  const RecordedValue first = recordings[0];
  std::stable_sort(
      recordings.begin(), recordings.end(),
      [](const RecordedValue& a, const RecordedValue& b) { return a.value < b.value; });
  for (size_t i = 0; i < recordings.size(); ++i) {
    RETURN_IF_ERROR(CheckRecording(recordings[i]));
    if (i > 0 && recordings[i].value == recordings[i - 1].value) {
      return absl::InvalidArgumentError(StrCat(recordings[i - 1].name, " and ", recordings[i].name,
                                               ": expected different values, found ",
                                               recordings[i].value, " twice"));
    }
    if (recordings[i].schedule == first.schedule) scaling.base_ = i;
    ASSIGN_OR_RETURN(std::vector<Bytes> sizes, Correspondence(first, recordings[i]).Sizes());
    scaling.sizes_.push_back(std::move(sizes));
  }
  scaling.recordings_ = std::move(recordings);
  scaling.CountBent();
  return scaling;
}

void Scaling::CountBent() {
  const size_t last = recordings_.size() - 1;
  for (AllocationId id = 0; id < allocations(); ++id) {
    const Bytes low = sizes_[0][id], high = sizes_[last][id];
    bool grows = false, is_bent = false;
    const auto line_at = [&](int64_t value) {
      return OnLine(recordings_[0], low, recordings_[last], high, value);
    };
    for (size_t i = 1; i <= last; ++i) {
      grows = grows || sizes_[i][id] != low;
      is_bent = is_bent || line_at(recordings_[i].value) != sizes_[i][id].signed_value();
    }
    if (last == 1 && grows) {
      const absl::int128 rise =
          absl::int128(high.signed_value()) - absl::int128(low.signed_value());
      is_bent =
          rise < 0 || rise % (recordings_[1].value - recordings_[0].value) != 0 || line_at(0) < 0;
    }
    growing_ += grows ? 1 : 0;
    if (!is_bent) continue;
    ++bent_;
    largest_bent_ = std::max(largest_bent_, high);
  }
}

Bytes Scaling::SizeOf(AllocationId id, int64_t value) const {
  for (size_t i = 0; i < recordings_.size(); ++i) {
    if (recordings_[i].value == value) return sizes_[i][id];
  }
  size_t high = 1;
  while (high + 1 < recordings_.size() && recordings_[high].value < value) ++high;
  const absl::int128 size = OnLine(recordings_[high - 1], sizes_[high - 1][id], recordings_[high],
                                   sizes_[high][id], value);
  // Nothing that was requested disappears; and more than a device has is too much in any case.
  const absl::int128 most = kMaxDeviceMemory.signed_value();
  return Bytes(static_cast<uint64_t>(std::clamp<absl::int128>(size, 1, most)));
}

Schedule Scaling::At(int64_t value) const {
  std::vector<Bytes> sizes(allocations());
  for (AllocationId id = 0; id < sizes.size(); ++id) sizes[id] = SizeOf(id, value);
  return base().schedule->WithSizes(sizes);
}

}  // namespace memreplay
