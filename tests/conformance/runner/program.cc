#include "program.h"

#include <cstdlib>
#include <stdexcept>

namespace memreplay::conformance {
namespace {

// A scanner over one line. It skips values that the harness does not use, nested ones included.
class Scanner {
 public:
  Scanner(const char* begin, const char* end, int line) : at_(begin), end_(end), line_(line) {}

  void skip_space() {
    while (at_ != end_ && (*at_ == ' ' || *at_ == '\t' || *at_ == '\r')) ++at_;
  }
  char peek() {
    skip_space();
    return at_ == end_ ? '\0' : *at_;
  }
  bool take(char c) {
    if (peek() != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!take(c)) fail(std::string("expected '") + c + "'");
  }
  std::string string() {
    expect('"');
    std::string out;
    while (at_ != end_ && *at_ != '"') {
      if (*at_ != '\\') {
        out += *at_++;
        continue;
      }
      if (++at_ == end_) break;
      const char escape = *at_++;
      switch (escape) {
        case 'n': out += '\n'; break;
        case 't': out += '\t'; break;
        case 'r': out += '\r'; break;
        case 'b': out += '\b'; break;
        case 'f': out += '\f'; break;
        case 'u': {
          if (end_ - at_ < 4) fail("bad \\u");
          out += static_cast<char>(std::strtoul(std::string(at_, 4).c_str(), nullptr, 16));
          at_ += 4;
          break;
        }
        default: out += escape;
      }
    }
    expect('"');
    return out;
  }
  std::string token() {
    skip_space();
    const char* begin = at_;
    while (at_ != end_ && *at_ != ',' && *at_ != '}' && *at_ != ']' && *at_ != ' ') ++at_;
    return std::string(begin, at_);
  }
  std::uint64_t integer() {
    const std::string text = token();
    char* rest = nullptr;
    const std::uint64_t value = std::strtoull(text.c_str(), &rest, 10);
    if (text.empty() || *rest != '\0') fail("expected an integer, got '" + text + "'");
    return value;
  }
  void skip() {
    const char c = peek();
    if (c == '"') {
      string();
    } else if (c == '[' || c == '{') {
      const char close = c == '[' ? ']' : '}';
      expect(c);
      while (!take(close)) {
        if (c == '{') {
          string();
          expect(':');
        }
        skip();
        if (!take(',') && peek() != close) fail("expected ','");
      }
    } else if (token().empty()) {
      fail("expected a value");
    }
  }
  [[noreturn]] void fail(const std::string& what) const {
    throw std::runtime_error("line " + std::to_string(line_) + ": " + what);
  }

 private:
  const char* at_;
  const char* end_;
  int line_;
};

void parse_line(Scanner& in, int line, Program& program) {
  Record record;
  record.line = line;
  Program header;
  in.expect('{');
  while (!in.take('}')) {
    const std::string key = in.string();
    in.expect(':');
    const bool text = in.peek() == '"';
    if (key == "k") {
      record.kind = in.string();
    } else if (key == "id") {
      record.id = in.integer();
    } else if (key == "b") {
      record.bytes = in.integer();
    } else if (key == "s") {
      record.stream = in.integer();
    } else if (key == "n") {
      if (text)
        record.text = in.string();
      else
        record.count = in.integer();
    } else if (key == "v") {
      if (text)
        record.text = in.string();
      else
        record.value = std::strtod(in.token().c_str(), nullptr);
    } else if (key == "p" && in.peek() == '[') {
      in.expect('[');
      record.pool.first = in.integer();
      in.expect(',');
      record.pool.second = in.integer();
      in.expect(']');
      record.has_pool = true;
    } else if (key == "oom") {
      record.use_on_oom = in.token() != "0";
    } else if (key == "nosplit") {
      record.no_split = in.token() != "0";
    } else if (key == "conf") {
      header.conf = in.string();
      header.has_conf = true;
    } else if (key == "total") {
      header.total = in.integer();
    } else if (key == "endless") {
      header.endless = in.token() != "0";
    } else if (key == "fraction") {
      header.fraction = std::strtod(in.token().c_str(), nullptr);
      header.has_fraction = true;
    } else if (key == "completion") {
      header.explicit_completion = in.string() == "explicit";
    } else {
      in.skip();
    }
    if (!in.take(',') && in.peek() != '}') in.fail("expected ',' or '}'");
  }
  if (record.kind.empty()) in.fail("no \"k\"");
  if (record.kind != "h") {
    program.records.push_back(std::move(record));
    return;
  }
  program.has_conf = header.has_conf;
  program.conf = header.conf;
  program.total = header.endless ? std::uint64_t{1} << 40 : header.total;
  program.endless = header.endless;
  program.has_fraction = header.has_fraction;
  program.fraction = header.fraction;
  program.explicit_completion = header.explicit_completion;
}

}  // namespace

Program parse_program(const std::string& text) {
  Program program;
  int line = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    std::size_t end = text.find('\n', begin);
    if (end == std::string::npos) end = text.size();
    ++line;
    Scanner in(text.data() + begin, text.data() + end, line);
    if (in.peek() != '\0') parse_line(in, line, program);
    begin = end + 1;
  }
  return program;
}

std::string json_string(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (static_cast<unsigned char>(c) < 0x20) {
      out += ' ';
    } else {
      out += c;
    }
  }
  return out + '"';
}

}  // namespace memreplay::conformance
