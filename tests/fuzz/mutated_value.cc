#include "tests/fuzz/mutated_value.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <utility>
#include <vector>

#include "tests/fuzz/choices.h"

namespace memreplay::fuzz {
namespace {

constexpr size_t kMaxItems = 64;        // of what is copied
constexpr size_t kMaxValues = 100'000;  // of all copies together
constexpr size_t kMaxCopies = 300;      // sums of numbers that are allowed exceed 64 bits

void Collect(Py& value, std::vector<Py*>* places) {
  places->push_back(&value);
  for (Py& item : value.items) Collect(item, places);
}

void Change(Py& value, const std::vector<Py*>& places,
            absl::FunctionRef<uint64_t(uint64_t)> below) {
  const bool is_list = value.kind == Py::kList;
  switch (below(11)) {
    case 0: value = Py(kEdges[below(std::size(kEdges))]); return;
    case 1: value = Py(-static_cast<int64_t>(below(1u << 30))); return;
    case 2: value = Py(0.5); return;
    case 3: value = below(2) == 0 ? Py(true) : Py(); return;
    case 4: value = Py::List({}); return;
    case 5: value = Py("nonsense \x1b[31m\xc2\x9b"); return;
    case 6: {  // another value of the file: wrong types, shared and nested content
      Py copy = *places[below(places.size())];
      if (copy.items.size() < kMaxItems) value = std::move(copy);
      return;
    }
    case 7:  // a key, an entry, a block or a segment is missing
      if (value.items.size() >= 2) {
        const bool is_dict = value.kind == Py::kDict;
        const size_t at = below(value.items.size() / 2) * 2;
        value.items.erase(value.items.begin() + static_cast<ptrdiff_t>(at),
                          value.items.begin() + static_cast<ptrdiff_t>(at + (is_dict ? 2 : 1)));
      }
      return;
    case 8:  // the same twice: overlaps, entries that free twice
      if (is_list && !value.items.empty() && value.items.size() < kMaxItems) {
        value.items.push_back(value.items[below(value.items.size())]);
      }
      return;
    case 9:
      if (is_list && !value.items.empty() && value.items.size() < kMaxItems) {
        const Py item = value.items[below(value.items.size())];
        const size_t most = std::min(kMaxCopies, kMaxValues / places.size() + 1);
        value.items.insert(value.items.end(), below(most), item);
      }
      return;
    default:
      if (is_list && !value.items.empty()) {
        for (size_t i = 0; i < value.items.size() && i < kMaxItems; ++i) {
          std::swap(value.items[i], value.items[below(value.items.size())]);
        }
      } else if (value.kind == Py::kInt || value.kind == Py::kUnsigned) {
        value.integer ^= static_cast<int64_t>(uint64_t{1} << below(64));
      }
  }
}

}  // namespace

Py MutateValue(Py value, absl::FunctionRef<uint64_t(uint64_t)> below) {
  for (uint64_t changes = 1 + below(4); changes > 0; --changes) {
    std::vector<Py*> places;
    Collect(value, &places);
    Change(*places[below(places.size())], places, below);
  }
  return value;
}

}  // namespace memreplay::fuzz
