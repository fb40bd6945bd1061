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

// Parse a value as a Python literal. Error: InvalidArgument, "KEY: expected X, found 'Y'".
absl::Status ParseValue(const Setting& setting, int64_t* out);  // also 600_000 and 5 * 8
absl::Status ParseValue(const Setting& setting, double* out);
absl::Status ParseValue(const Setting& setting, bool* out);
absl::Status ParseValue(const Setting& setting, std::string* out);  // with or without quotes
absl::Status CheckChoice(const Setting& setting, std::string_view value, std::string_view choices);

std::string ValueText(int64_t value);
std::string ValueText(double value);
std::string ValueText(bool value);  // "True"
std::string ValueText(const std::string& value);
std::string ValueJson(int64_t value);
std::string ValueJson(double value);
std::string ValueJson(bool value);
std::string ValueJson(const std::string& value);

// Parses a Python config file: lines with `key = value`, comments, and blank lines. `name` is used
// in messages: "FILE: line L: expected X, found Y".
absl::StatusOr<std::vector<Setting>> ReadConfigFile(std::string_view text, std::string_view name);

// Returns the advice for `key`; empty if there is none.
std::string_view FindHint(absl::Span<const KeyHint> hints, std::string_view key);

template <typename Config>
std::vector<KeyInfo> DescribeKeys(const std::vector<ConfigKey<Config>>& keys) {
  const Config defaults;
  std::vector<KeyInfo> infos;
  for (const ConfigKey<Config>& key : keys) {
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

// Sets a key. Error: NotFound if there is no such key.
template <typename Config>
absl::Status SetKey(const std::vector<ConfigKey<Config>>& keys, const Setting& setting,
                    Config* config) {
  const auto key =
      std::find_if(keys.begin(), keys.end(), [&](const auto& k) { return k.name == setting.key; });
  if (key == keys.end()) return absl::NotFoundError(setting.key);
  const absl::Status set = std::visit(
      [&](auto member) -> absl::Status {
        if constexpr (std::is_same_v<decltype(member), std::monostate>) {
          return absl::OkStatus();
        } else {
          auto value = config->*member;
          if (absl::Status parsed = ParseValue(setting, &value); !parsed.ok()) return parsed;
          if (!key->choices.empty()) {
            const absl::Status chosen = CheckChoice(setting, ValueText(value), key->choices);
            if (!chosen.ok()) return chosen;
          }
          config->*member = std::move(value);
          return absl::OkStatus();
        }
      },
      key->member);
  if (set.ok()) key->follow(config);
  return set;
}

// Returns all keys that affect memory as one JSON object.
template <typename Config>
std::string KeysToJson(const std::vector<ConfigKey<Config>>& keys, const Config& config) {
  std::string json = "{";
  for (const ConfigKey<Config>& key : keys) {
    std::visit(
        [&](auto member) {
          if constexpr (!std::is_same_v<decltype(member), std::monostate>) {
            StrAppend(&json, json.size() > 1 ? "," : "", "\"", key.name,
                      "\":", ValueJson(config.*member));
          }
        },
        key.member);
  }
  return json + "}";
}

}  // namespace memreplay::synth
