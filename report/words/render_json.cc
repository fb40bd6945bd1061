#include "report/words/render_json.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/stubs/logging.h>
#include <google/protobuf/util/json_util.h>
#include <google/protobuf/util/type_resolver_util.h>

#include <memory>

#include "trace/value/strings.h"

namespace memreplay {
namespace {

namespace pb = ::google::protobuf;

constexpr char kTypePrefix[] = "type.googleapis.com";

// MessageToJsonString() serialises first, with maps in hash order; this does
// the same with maps in key order.
std::string SerializeInKeyOrder(const pb::Message& message) {
  std::string bytes;
  pb::io::StringOutputStream stream(&bytes);
  pb::io::CodedOutputStream coded(&stream);
  coded.SetSerializationDeterministic(true);
  message.SerializeToCodedStream(&coded);
  coded.Trim();
  return bytes;
}

std::string ToJson(const pb::Message& message, bool indented) {
  const std::unique_ptr<pb::util::TypeResolver> resolver(pb::util::NewTypeResolverForDescriptorPool(
      kTypePrefix, pb::DescriptorPool::generated_pool()));
  pb::util::JsonPrintOptions options;
  options.add_whitespace = indented;
  options.always_print_primitive_fields = true;
  options.preserve_proto_field_names = true;
  std::string json;
  const auto status = pb::util::BinaryToJsonString(
      resolver.get(), StrCat(kTypePrefix, "/", message.GetDescriptor()->full_name()),
      SerializeInKeyOrder(message), &json, options);
  GOOGLE_CHECK(status.ok()) << "report is not JSON: " << status.message();
  return json;
}

}  // namespace

std::string RenderJson(const google::protobuf::Message& report, JsonLayout layout) {
  std::string json = ToJson(report, layout == JsonLayout::kIndented);
  if (json.empty() || json.back() != '\n') json += '\n';
  return json;
}

std::string RenderJson(const proto::GpuCosts& costs) { return ToJson(costs, true); }

google::protobuf::Value DivergenceValue(const proto::Divergence* divergence) {
  pb::Value value;
  if (divergence == nullptr) {
    value.set_null_value(pb::NULL_VALUE);
    return value;
  }
  const auto status = pb::util::JsonStringToMessage(ToJson(*divergence, false), &value);
  GOOGLE_CHECK(status.ok()) << "a divergence's JSON does not parse: " << status.message();
  return value;
}

}  // namespace memreplay
