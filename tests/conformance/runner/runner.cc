// Runs programs through PyTorch's own compiled allocator (libc10_cuda.so of an unpacked wheel) on
// the fake CUDA runtime, and writes what it did: its trace, its final statistics and its final
// segments.
//
//   runner PROGRAM              one program, output on stdout
//   runner --list FILE          the file's lines are "PROGRAM OUTPUT"; each program runs in a
//   process of its own,
//                               forked from this one before the allocator was first used
//   runner --time OP_LOG        prints the CPU seconds that a log of "id size" (allocates) and
//                               "id -size" (frees) takes on an endless device, history off
//
// Output: one trace entry per line, then one line with the result (see ../README.md).
//
// TORCH_RELEASE is major * 100 + minor of the wheel. Releases differ in the calls, not in the
// requests made of them.
#include <c10/core/DeviceType.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAStream.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#if __has_include(<c10/cuda/CUDAAllocatorConfig.h>)
#include <c10/cuda/CUDAAllocatorConfig.h>
#endif
#if TORCH_RELEASE >= 211
#include <c10/cuda/PeerToPeerAccess.h>
#endif
#include <c10/util/Exception.h>
#include <c10/util/Logging.h>
#include <cxxabi.h>
#include <fcntl.h>

#include <algorithm>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <iostream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <unordered_map>
#include <vector>

#include "program.h"
#include "record/card/control.h"

#if TORCH_RELEASE >= 201
namespace c10::cuda::_internal {
void setHasPrimaryContext(
    bool (*)(c10::DeviceIndex));  // what libtorch_cuda would do when it is loaded
}
#endif

namespace {

namespace allocator = c10::cuda::CUDACachingAllocator;
using memreplay::conformance::json_string;
using memreplay::conformance::parse_program;
using memreplay::conformance::Program;
using memreplay::conformance::Record;

volatile int* current_line =
    nullptr;  // shared with the parent process, to tell where a crash happened

class Text {
 public:
  Text& operator<<(const char* s) {
    out_.append(s);
    return *this;
  }
  Text& operator<<(const std::string& s) {
    out_.append(s);
    return *this;
  }
  template <typename T>
  requires std::is_integral_v<T> Text& operator<<(T value) {
    char buffer[24];
    const auto end = std::to_chars(buffer, buffer + sizeof buffer, value).ptr;
    out_.append(buffer, end);
    return *this;
  }
  void write(int file) {
    for (std::size_t done = 0; done < out_.size();) {
      const ssize_t n = ::write(file, out_.data() + done, out_.size() - done);
      if (n <= 0) _exit(3);
      done += static_cast<std::size_t>(n);
    }
  }

 private:
  std::string out_;
};

std::string type_name(const std::type_info& type) {
  int status = 0;
  char* name = abi::__cxa_demangle(type.name(), nullptr, nullptr, &status);
  std::string out = name == nullptr ? type.name() : name;
  std::free(name);
  return out;
}

// ----------------------------------------------------------------------------------------------
// calls by release

#if TORCH_RELEASE >= 201
std::shared_ptr<c10::GatheredContext> no_context() { return nullptr; }
#endif

template <typename A>
void record_history(A* a) {
  constexpr std::size_t entries = std::size_t{1} << 40;
#if TORCH_RELEASE <= 200
  a->recordHistory(true, nullptr, entries, false);
#else
  if constexpr (requires {
                  a->recordHistory(true, no_context, entries, allocator::RecordContext::NEVER,
                                   false, std::vector<std::string>{});
                }) {
    a->recordHistory(true, no_context, entries, allocator::RecordContext::NEVER, false,
                     std::vector<std::string>{});
  } else if constexpr (requires {
                         a->recordHistory(true, no_context, entries,
                                          allocator::RecordContext::NEVER, false);
                       }) {
    a->recordHistory(true, no_context, entries, allocator::RecordContext::NEVER, false);
  } else {
    a->recordHistory(true, no_context, entries, allocator::RecordContext::NEVER);
  }
#endif
}

using PoolId = std::pair<unsigned long long, unsigned long long>;

[[noreturn]] void unsupported(const char* what) {
  throw std::runtime_error(std::string("not in this release: ") + what);
}

template <typename A>
void create_pool(A* a, const Record& r) {
  const PoolId id(r.pool.first, r.pool.second);
  if constexpr (requires { a->createOrIncrefPool(0, id); }) {
    a->createOrIncrefPool(0, id);
  } else if constexpr (requires { a->ensureExistsAndIncrefPool(0, id); }) {
    a->ensureExistsAndIncrefPool(0, id);
  } else {
    unsupported("cp");
  }
  if (r.use_on_oom) {
    if constexpr (requires { a->setUseOnOOM(0, id, true); }) {
      a->setUseOnOOM(0, id, true);
    } else if constexpr (requires { a->setUseOnOOM(0, id); }) {
      a->setUseOnOOM(0, id);
    } else {
      unsupported("use on OOM");
    }
  }
  if (r.no_split) {
    if constexpr (requires { a->setNoSplit(0, id); }) {
      a->setNoSplit(0, id);
    } else {
      unsupported("no split");
    }
  }
}

template <typename A>
void forget_use_on_oom(A* a, const Record& r) {
  const PoolId id(r.pool.first, r.pool.second);
  if constexpr (requires { a->setUseOnOOM(0, id, false); }) a->setUseOnOOM(0, id, false);
}

// Pools with a first number other than 0 belong to CUDA graphs. Releases that tell a capture from a
// mere pool are informed.
template <typename A>
void begin_pool(A* a, const Record& r, const std::vector<cudaStream_t>& streams) {
  const PoolId id(r.pool.first, r.pool.second);
  if constexpr (requires { a->beginAllocateToPool(0, id, [](cudaStream_t) { return true; }); }) {
    a->beginAllocateToPool(0, id, [](cudaStream_t) { return true; });
  } else if constexpr (requires { a->beginAllocateStreamToPool(0, streams[0], id); }) {
    // Each stream counts as a use; the program means one.
    for (const cudaStream_t stream : streams) a->beginAllocateStreamToPool(0, stream, id);
    for (std::size_t i = 1; i < streams.size(); ++i) a->releasePool(0, id);
  } else {
    unsupported("bp");
  }
  if (id.first == 0) return;
  if constexpr (requires { a->markCaptureBegin(0); }) a->markCaptureBegin(0);
  memreplay_card_capture(1);
}

template <typename A>
void end_pool(A* a, const Record& r, const std::vector<cudaStream_t>& streams) {
  const PoolId id(r.pool.first, r.pool.second);
  if (id.first != 0) {
    memreplay_card_capture(0);
    if constexpr (requires { a->markCaptureEnd(0); }) a->markCaptureEnd(0);
  }
  if constexpr (requires { a->endAllocateToPool(0, id); }) {
    a->endAllocateToPool(0, id);
  } else if constexpr (requires { a->endAllocateStreamToPool(0, streams[0]); }) {
    for (const cudaStream_t stream : streams) a->endAllocateStreamToPool(0, stream);
  } else {
    unsupported("ep");
  }
}

template <typename A>
void release_pool(A* a, const Record& r) {
  const PoolId id(r.pool.first, r.pool.second);
  if constexpr (requires { a->releasePool(0, id); })
    a->releasePool(0, id);
  else
    unsupported("rp");
}

template <typename A>
void empty_cache(A* a, const Record& r) {
  if constexpr (requires { a->emptyCache(PoolId(1, 0)); }) {
    a->emptyCache(PoolId(r.pool.first, r.pool.second));
  } else {
    if (r.has_pool) unsupported("empty_cache of one pool");
    a->emptyCache();
  }
}

// ------------------------------------------------------------------------------------------------------
// output

template <typename Entry>
void write_entry(Text& out, const Entry& e) {
  const char* action = "unknown";
  bool oom = false;
  switch (e.action_) {
    case Entry::ALLOC: action = "alloc"; break;
    case Entry::FREE_REQUESTED: action = "free_requested"; break;
    case Entry::FREE_COMPLETED: action = "free_completed"; break;
    case Entry::SEGMENT_ALLOC: action = "segment_alloc"; break;
    case Entry::SEGMENT_FREE: action = "segment_free"; break;
#if TORCH_RELEASE >= 201
    case Entry::SEGMENT_MAP: action = "segment_map"; break;
    case Entry::SEGMENT_UNMAP: action = "segment_unmap"; break;
#endif
    case Entry::SNAPSHOT: action = "snapshot"; break;
    case Entry::OOM:
      action = "oom";
      oom = true;
      break;
    default: break;
  }
  out << "{\"action\":\"" << action << (oom ? "\",\"device_free\":" : "\",\"addr\":")
      << static_cast<std::uint64_t>(e.addr_) << ",\"size\":" << static_cast<std::uint64_t>(e.size_)
      << ",\"stream\":" << reinterpret_cast<std::uint64_t>(e.stream_) << "}\n";
}

class Statistics {
 public:
  explicit Statistics(Text& out) : out_(out) { out_ << "{"; }
  void scalar(const std::string& name, std::int64_t value) {
    out_ << (first_ ? "\"" : ",\"") << name << "\":" << value;
    first_ = false;
  }
  template <typename Stat>
  void single(const std::string& name, const Stat& s) {
    scalar(name + ".current", s.current);
    scalar(name + ".peak", s.peak);
    scalar(name + ".allocated", s.allocated);
    scalar(name + ".freed", s.freed);
  }
  template <typename Array>
  void array(const std::string& name, const Array& a) {
    single(name + ".all", a[0]);
    single(name + ".small_pool", a[1]);
    single(name + ".large_pool", a[2]);
  }
  void close() { out_ << "}"; }

 private:
  Text& out_;
  bool first_ = true;
};

template <typename Stats>
void write_statistics(Text& out, const Stats& s) {
  Statistics json(out);
  json.array("allocation", s.allocation);
  json.array("segment", s.segment);
  json.array("active", s.active);
  json.array("inactive_split", s.inactive_split);
  json.array("allocated_bytes", s.allocated_bytes);
  json.array("reserved_bytes", s.reserved_bytes);
  json.array("active_bytes", s.active_bytes);
  json.array("inactive_split_bytes", s.inactive_split_bytes);
  if constexpr (requires { s.requested_bytes; }) json.array("requested_bytes", s.requested_bytes);
  json.single("oversize_allocations", s.oversize_allocations);
  json.single("oversize_segments", s.oversize_segments);
  json.scalar("num_alloc_retries", s.num_alloc_retries);
  json.scalar("num_ooms", s.num_ooms);
  json.scalar("max_split_size", s.max_split_size);
  if constexpr (requires { s.num_sync_all_streams; })
    json.scalar("num_sync_all_streams", s.num_sync_all_streams);
  if constexpr (requires { s.num_device_alloc; })
    json.scalar("num_device_alloc", s.num_device_alloc);
  if constexpr (requires { s.num_device_free; }) json.scalar("num_device_free", s.num_device_free);
  if constexpr (requires { s.num_oom_rejections; })
    json.scalar("num_oom_rejections", s.num_oom_rejections);
  if constexpr (requires { s.reserved_bytes_by_private_pools; }) {
    std::map<PoolId, std::remove_cvref_t<decltype(s.reserved_bytes)>> sorted;
    for (const auto& [id, value] : s.reserved_bytes_by_private_pools) sorted.emplace(id, value);
    for (const auto& [id, value] : sorted) {
      json.array("reserved_bytes_by_private_pools." + std::to_string(id.first) + "_" +
                     std::to_string(id.second),
                 value);
    }
  }
  json.close();
}

template <typename Segments>
void write_segments(Text& out, const Segments& segments) {
  out << "[";
  bool first_segment = true;
  for (const auto& s : segments) {
    out << (first_segment ? "" : ",") << "{\"address\":" << static_cast<std::uint64_t>(s.address)
        << ",\"total_size\":" << static_cast<std::uint64_t>(s.total_size)
        << ",\"allocated_size\":" << static_cast<std::uint64_t>(s.allocated_size)
        << ",\"active_size\":" << static_cast<std::uint64_t>(s.active_size);
    if constexpr (requires { s.requested_size; })
      out << ",\"requested_size\":" << static_cast<std::uint64_t>(s.requested_size);
    out << ",\"stream\":" << reinterpret_cast<std::uint64_t>(s.stream) << ",\"segment_type\":\""
        << (s.is_large ? "large" : "small") << "\"";
    if constexpr (requires { s.owner_private_pool_id; }) {
      out << ",\"segment_pool_id\":[" << s.owner_private_pool_id.first << ","
          << s.owner_private_pool_id.second << "]";
    }
    if constexpr (requires { s.is_expandable; })
      out << ",\"is_expandable\":" << (s.is_expandable ? "true" : "false");
    out << ",\"blocks\":[";
    std::uint64_t address = static_cast<std::uint64_t>(s.address);
    bool first_block = true;
    for (const auto& b : s.blocks) {
      const char* state = b.allocated ? "active_allocated"
                          : b.active  ? "active_pending_free"
                                      : "inactive";
      out << (first_block ? "" : ",") << "{\"address\":" << address
          << ",\"size\":" << static_cast<std::uint64_t>(b.size);
      if constexpr (requires { b.requested_size; })
        out << ",\"requested_size\":" << static_cast<std::uint64_t>(b.requested_size);
      out << ",\"state\":\"" << state << "\"}";
      address += static_cast<std::uint64_t>(b.size);
      first_block = false;
    }
    out << "]}";
    first_segment = false;
  }
  out << "]";
}

// --------------------------------------------------------------------------------------------------------
// running

class Run {
 public:
  explicit Run(const Program& program) : program_(program) {}

  void execute(Text& out) {
    prepare();
    for (const Record& r : program_.records) {
      *current_line = r.line;
      guarded(r.line, [&] { step(r); });
    }
    *current_line = -1;
    finish(out);
  }

  // Returns the seconds of CPU time of the operations alone.
  double time(const std::vector<std::pair<std::uint32_t, std::int64_t>>& operations) {
    prepare(/*with_history=*/false);
    std::uint32_t ids = 0;
    for (const auto& [id, size] : operations) ids = std::max(ids, id + 1);
    std::vector<void*> live(ids);
    auto* a = allocator::get();
    const std::clock_t start = std::clock();
    for (const auto& [id, size] : operations) {
      if (size >= 0) {
        live[id] = a->raw_alloc(static_cast<std::size_t>(size));
      } else {
        a->raw_delete(live[id]);
      }
    }
    return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  }

 private:
  template <typename F>
  void guarded(int line, F f) {
    try {
      f();
    } catch (const c10::OutOfMemoryError& e) {
      ooms_.push_back(line);
      oom_messages_.push_back(first_line(e.what_without_backtrace()));
    } catch (const c10::Error& e) {
      error(line, type_name(typeid(e)), e.what_without_backtrace());
    } catch (const std::exception& e) {
      error(line, type_name(typeid(e)), e.what());
    }
  }
  static std::string first_line(std::string text) {
    const auto end = text.find('\n');
    return end == std::string::npos ? text : text.substr(0, end);
  }
  void error(int line, const std::string& type, const std::string& message) {
    Text text;
    errors_.push_back("{\"line\":" + std::to_string(line) + ",\"type\":" + json_string(type) +
                      ",\"message\":" + json_string(first_line(message)) + "}");
  }

  void prepare(bool with_history = true) {
    if (program_.has_conf)
      setenv("PYTORCH_CUDA_ALLOC_CONF", program_.conf.c_str(), 1);
    else
      unsetenv("PYTORCH_CUDA_ALLOC_CONF");
    memreplay_card_simulate(program_.total);
    memreplay_card_endless(program_.endless ? 1 : 0);
    memreplay_card_explicit(program_.explicit_completion ? 1 : 0);
    std::uint64_t most = 0;
    std::set<std::uint64_t> used{0};
    for (const Record& r : program_.records) {
      most = std::max(most, r.stream);
      used.insert(r.stream);
    }
    if (most > 32) throw std::runtime_error("stream numbers go from 0 to 32");
    streams_.push_back(c10::cuda::getDefaultCUDAStream(0));
    for (std::uint64_t s = 1; s <= most; ++s) {
      streams_.push_back(c10::cuda::getStreamFromPool(false, 0));
      if (reinterpret_cast<std::uint64_t>(streams_.back().stream()) != s)
        throw std::runtime_error("stream handles are not in order");
    }
    for (const std::uint64_t s : used) used_streams_.push_back(streams_[s].stream());
#if TORCH_RELEASE >= 211
    guarded(0, [] { c10::cuda::detail::init_p2p_access_cache(1); });
#endif
    guarded(0, [] { allocator::init(1); });
    if (with_history) guarded(0, [&] { record_history(allocator::get()); });
    if (program_.has_fraction)
      guarded(0, [&] { allocator::setMemoryFraction(program_.fraction, 0); });
  }

  void step(const Record& r) {
    auto* a = allocator::get();
    const std::string& k = r.kind;
    if (k == "a") {
      c10::cuda::setCurrentCUDAStream(streams_[r.stream]);
      live_.erase(r.id);
      c10::DataPtr data = a->allocate(r.bytes);
      live_.insert_or_assign(r.id, std::move(data));
    } else if (k == "f") {
      const auto found = live_.find(r.id);
      if (found == live_.end()) return;
      void* pointer = found->second.release_context();
      live_.erase(found);
      if (pointer != nullptr) a->raw_delete(pointer);
    } else if (k == "u") {
      const auto found = live_.find(r.id);
      if (found != live_.end()) a->recordStream(found->second, streams_[r.stream]);
    } else if (k == "done" || k == "y") {
      memreplay_card_complete(r.stream);
    } else if (k == "c") {
      empty_cache(a, r);
    } else if (k == "x") {
      if (r.text == "reset_accumulated")
        allocator::resetAccumulatedStats(0);
      else
        allocator::resetPeakStats(0);
    } else if (k == "X") {
      external_[r.text] += r.bytes;
      memreplay_card_external(static_cast<std::int64_t>(r.bytes));
    } else if (k == "Xf") {
      const std::uint64_t bytes = r.bytes != 0 ? r.bytes : external_[r.text];
      memreplay_card_external(-static_cast<std::int64_t>(bytes));
      external_.erase(r.text);
    } else if (k == "conf") {
      allocator::setAllocatorSettings(r.text);
    } else if (k == "frac") {
      allocator::setMemoryFraction(r.value, 0);
    } else if (k == "fail") {
      memreplay_card_fail_next(r.count);
    } else if (k == "cp") {
      create_pool(a, r);
    } else if (k == "cx") {
      forget_use_on_oom(a, r);
    } else if (k == "bp") {
      begin_pool(a, r, used_streams_);
    } else if (k == "ep") {
      end_pool(a, r, used_streams_);
    } else if (k == "rp") {
      release_pool(a, r);
    } else if (k != "p" && k != "t" && k != "m" && k != "e" && k != "w") {
      throw std::runtime_error("unknown record '" + k + "'");
    }
  }

  void finish(Text& out) {
    std::string failed;
    try {
      const auto snapshot = allocator::snapshot();
      if (!snapshot.device_traces.empty()) {
        for (const auto& entry : snapshot.device_traces[0]) write_entry(out, entry);
      }
      out << "{\"statistics\":";
      write_statistics(out, allocator::getDeviceStats(0));
      out << ",\"segments\":";
      write_segments(out, snapshot.segments);
    } catch (const std::exception& e) {
      out << "{\"snapshot_error\":" << json_string(first_line(e.what()));
    }
    out << ",\"ooms\":[";
    for (std::size_t i = 0; i < ooms_.size(); ++i) out << (i == 0 ? "" : ",") << ooms_[i];
    out << "],\"oom_messages\":[";
    for (std::size_t i = 0; i < oom_messages_.size() && i < 2; ++i)
      out << (i == 0 ? "" : ",") << json_string(oom_messages_[i]);
    out << "],\"errors\":[";
    for (std::size_t i = 0; i < errors_.size(); ++i) out << (i == 0 ? "" : ",") << errors_[i];
    out << "]}\n";
  }

  const Program& program_;
  std::vector<c10::cuda::CUDAStream> streams_;
  std::vector<cudaStream_t> used_streams_;
  std::unordered_map<std::uint64_t, c10::DataPtr> live_;
  std::unordered_map<std::string, std::uint64_t> external_;
  std::vector<int> ooms_;
  std::vector<std::string> oom_messages_;
  std::vector<std::string> errors_;
};

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw std::runtime_error("cannot read " + path);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

void run_file(const std::string& path, int output) {
  Text out;
  try {
    const Program program = parse_program(read_file(path));
    Run* run = new Run(program);  // never destroyed: what is live stays with the allocator
    run->execute(out);
  } catch (const std::exception& e) {
    out << "{\"failed\":" << json_string(e.what()) << "}\n";
  }
  out.write(output);
}

int time_log(const std::string& path) {
  std::vector<std::pair<std::uint32_t, std::int64_t>> operations;
  std::ifstream in(path);
  for (std::pair<std::uint32_t, std::int64_t> one; in >> one.first >> one.second;) {
    operations.push_back(one);
  }
  Program program;
  program.endless = true;
  std::cout << (new Run(program))->time(operations) << std::endl;
  _exit(operations.empty() ? 1 : 0);
}

int run_list(const std::string& list) {
  std::ifstream in(list);
  std::string line;
  while (std::getline(in, line)) {
    const auto space = line.find(' ');
    if (space == std::string::npos) continue;
    const std::string program = line.substr(0, space);
    const std::string output = line.substr(space + 1);
    *current_line = 0;
    const pid_t child = fork();
    if (child == 0) {
      const int file = ::open(output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
      if (file < 0) _exit(4);
      run_file(program, file);
      _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    if (status != 0) {
      std::ofstream out(output, std::ios::app);
      out << "{\"crashed\":" << (WIFSIGNALED(status) ? WTERMSIG(status) : -WEXITSTATUS(status))
          << ",\"line\":" << *current_line << "}\n";
    }
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  current_line = static_cast<int*>(
      mmap(nullptr, sizeof(int), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
#if TORCH_RELEASE >= 201
  c10::cuda::_internal::setHasPrimaryContext([](c10::DeviceIndex) { return true; });
#endif
  if (argc == 3 && std::strcmp(argv[1], "--list") == 0) return run_list(argv[2]);
  if (argc == 3 && std::strcmp(argv[1], "--time") == 0) return time_log(argv[2]);
  if (argc != 2) {
    std::cerr << "usage: runner PROGRAM | runner --list FILE | runner --time OP_LOG\n";
    return 2;
  }
  run_file(argv[1], 1);
  std::cout.flush();
  _exit(0);
}
