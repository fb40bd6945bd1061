// docs/metrics.md and docs/oom.md define every number of a report: the tags of
// their tables against the fields of proto/report.proto.
#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>
#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "proto/report.pb.h"

namespace memreplay {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;

// What stands in `these` in the first cells of tables.
std::set<std::string> TagsOf(const std::string& path) {
  std::ifstream file(path);
  EXPECT_TRUE(file.good()) << path;
  std::set<std::string> tags;
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("| ", 0) != 0) continue;
    const std::string cell = line.substr(0, line.find(" |", 2));
    for (size_t from = cell.find('`'); from != std::string::npos;) {
      const size_t to = cell.find('`', from + 1);
      if (to == std::string::npos) break;
      tags.insert(cell.substr(from + 1, to - from - 1));
      from = cell.find('`', to + 1);
    }
  }
  return tags;
}

bool IsNumber(const FieldDescriptor& field) {
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
    case FieldDescriptor::CPPTYPE_INT64:
    case FieldDescriptor::CPPTYPE_DOUBLE: return true;
    default: return false;
  }
}

// "Inventory.StreamUse.allocs": with the messages that hold it, without the package.
std::string NameOf(const FieldDescriptor& field) {
  return field.full_name().substr(field.file()->package().size() + 1);
}

// The numbers of `message` and of the messages in it, those of this file alone.
void Visit(const Descriptor& message, std::set<const Descriptor*>* seen,
           std::vector<const FieldDescriptor*>* numbers) {
  if (message.file() != proto::Report::descriptor()->file() || !seen->insert(&message).second) {
    return;
  }
  if (message.options().map_entry()) return;
  for (int i = 0; i < message.field_count(); ++i) {
    const FieldDescriptor& field = *message.field(i);
    if (IsNumber(field)) numbers->push_back(&field);
    if (field.message_type() != nullptr) Visit(*field.message_type(), seen, numbers);
  }
}

std::vector<const FieldDescriptor*> Numbers() {
  std::set<const Descriptor*> seen;
  std::vector<const FieldDescriptor*> numbers;
  Visit(*proto::Report::descriptor(), &seen, &numbers);
  return numbers;
}

TEST(MetricsDoc, DefinesEveryNumberOfAReport) {
  std::set<std::string> tags = TagsOf("docs/metrics.md");
  tags.merge(TagsOf("docs/oom.md"));
  ASSERT_GT(tags.size(), 100u);
  ASSERT_GT(Numbers().size(), 200u);
  for (const FieldDescriptor* field : Numbers()) {
    EXPECT_TRUE(tags.count(field->name()) > 0 || tags.count(NameOf(*field)) > 0)
        << "no row for " << NameOf(*field);
  }
}

// A tag with its message is one of a field that exists.
TEST(MetricsDoc, DefinesNothingThatIsNot) {
  std::set<std::string> names;
  const google::protobuf::FileDescriptor& file = *proto::Report::descriptor()->file();
  std::vector<const Descriptor*> messages;
  for (int i = 0; i < file.message_type_count(); ++i) messages.push_back(file.message_type(i));
  for (size_t i = 0; i < messages.size(); ++i) {
    for (int k = 0; k < messages[i]->nested_type_count(); ++k) {
      messages.push_back(messages[i]->nested_type(k));
    }
    for (int k = 0; k < messages[i]->field_count(); ++k) {
      names.insert(NameOf(*messages[i]->field(k)));
    }
  }
  for (const std::string& tag : TagsOf("docs/metrics.md")) {
    if (tag.find('.') != std::string::npos) {
      EXPECT_EQ(names.count(tag), 1u) << tag;
    }
  }
}

}  // namespace
}  // namespace memreplay
