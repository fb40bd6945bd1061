// The keys of a configuration. A key maps a name on the command line or in a config file to a
// member, its type and its valid values.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "trace/value/status_macros.h"
#include "trace/value/strings.h"

namespace memreplay::synth {

// A setting on the command line (without "--") or in a config file.
struct Setting {
  std::string key;
  std::string value;  // a Python literal
};

// The description of a key for --help.
struct KeyInfo {
  std::string_view name;
  std::string values;         // "N", "True|False", "auto|flash" ...
  std::string default_value;  // empty: the key does not affect memory
};

// Advice for a key that does not exist but that users expect.
struct KeyHint {
  std::string_view key;
  std::string_view hint;
};

// A key of a model's settings, and the member of Config that it sets.
template <typename Config>
struct ConfigKey {
  std::string_view name;
  // monostate: known, but without effect on memory.
  std::variant<std::monostate, int64_t Config::*, double Config::*, bool Config::*,
               std::string Config::*>
      member;
  std::string_view choices = {};           // "none|block"; empty: any
  void (*follow)(Config*) = [](auto*) {};  // sets the keys that depend on it
};

// The keys of a model's settings, in the order in which command lines apply them, and what is said
// of others.
template <typename Config>
struct ConfigKeys {
  std::vector<ConfigKey<Config>> keys;
  absl::Span<const KeyHint> hints;
  std::string_view model;    // "nanoGPT"
  std::string_view unknown;  // follows "MODEL has no key NAME" if there is no hint
};
// Returns those of a model; each model specialises it.
template <typename Config>
const ConfigKeys<Config>& KeysOf();

// Parse a value as a Python literal. Error: InvalidArgument, "KEY: expected X, found 'Y'".
absl::Status ParseValue(const Setting& setting, int64_t* out);  // also 600_000 and 5 * 8
absl::Status ParseValue(const Setting& setting, double* out);
absl::Status ParseValue(const Setting& setting, bool* out);
absl::Status ParseValue(const Setting& setting, std::string* out);  // with or without quotes
absl::Status CheckChoice(const Setting& setting, std::string_view value, std::string_view choices);

// Return a value as Python and as JSON write it.
std::string ValueText(bool value);
std::string ValueJson(bool value);
inline std::string ValueText(const std::string& value) { return value; }
std::string ValueJson(const std::string& value);
template <typename Number>
std::string ValueText(Number value) {
  return StrCat(value);
}
template <typename Number>
std::string ValueJson(Number value) {
  return StrCat(value);
}

// Parses a Python config file: lines with `key = value`, comments, and blank lines. `name` is used
// in messages: "FILE: line L: expected X, found Y".
absl::StatusOr<std::vector<Setting>> ReadConfigFile(std::string_view text, std::string_view name);

// Returns the advice for `key`; empty if there is none.
std::string_view FindHint(absl::Span<const KeyHint> hints, std::string_view key);

template <typename Config>
std::vector<KeyInfo> DescribeKeys() {
  const Config defaults;
  std::vector<KeyInfo> infos;
  for (const ConfigKey<Config>& key : KeysOf<Config>().keys) {
    KeyInfo info{key.name, std::string(key.choices), ""};
    std::visit(
        [&](auto member) {
          using Member = decltype(member);
          if constexpr (!std::is_same_v<Member, std::monostate>) {
            info.default_value = ValueText(defaults.*member);
            if (!info.values.empty()) return;
            info.values = std::is_same_v<Member, int64_t Config::*>  ? "N"
                          : std::is_same_v<Member, double Config::*> ? "X"
                          : std::is_same_v<Member, bool Config::*>   ? "True|False"
                                                                     : "V";
          } else {
            info.values = "V";
          }
        },
        key.member);
    infos.push_back(std::move(info));
  }
  return infos;
}

// Applies a setting. Error: InvalidArgument for an unknown key (with advice) or a value of another
// type than the key's, as in nanoGPT's configurator.
template <typename Config>
absl::Status ApplySetting(const Setting& setting, Config* config) {
  const ConfigKeys<Config>& all = KeysOf<Config>();
  const auto key = std::find_if(all.keys.begin(), all.keys.end(),
                                [&](const auto& k) { return k.name == setting.key; });
  if (key == all.keys.end()) {
    const std::string_view hint = FindHint(all.hints, setting.key);
    return absl::InvalidArgumentError(StrCat(all.model, " has no key ", setting.key,
                                             hint.empty() ? "" : ": ",
                                             hint.empty() ? all.unknown : hint));
  }
  const absl::Status set = std::visit(
      [&](auto member) -> absl::Status {
        if constexpr (std::is_same_v<decltype(member), std::monostate>) {
          return absl::OkStatus();
        } else {
          auto value = config->*member;
          RETURN_IF_ERROR(ParseValue(setting, &value));
          if (!key->choices.empty()) {
            RETURN_IF_ERROR(CheckChoice(setting, ValueText(value), key->choices));
          }
          config->*member = std::move(value);
          return absl::OkStatus();
        }
      },
      key->member);
  if (set.ok()) key->follow(config);
  return set;
}

// Returns the header of a schedule: its generator, and all keys that affect memory.
template <typename Config>
std::string ProgramHeader(const Config& config, std::string_view generator) {
  std::string json;
  for (const ConfigKey<Config>& key : KeysOf<Config>().keys) {
    std::visit(
        [&](auto member) {
          if constexpr (!std::is_same_v<decltype(member), std::monostate>) {
            StrAppend(&json, json.empty() ? "" : ",", "\"", key.name,
                      "\":", ValueJson(config.*member));
          }
        },
        key.member);
  }
  return StrCat("{\"config\":{", json, "},\"meta\":{\"generator\":\"", generator, "\"}}");
}

}  // namespace memreplay::synth
