#include <gtest/gtest.h>

#include "report/text/render.h"

namespace memreplay {
namespace {

proto::ProgramCheck Sample() {
  proto::ProgramCheck check;
  check.set_file("a.txtpb");
  check.set_events(1234567);
  (*check.mutable_events_by_kind())["mark"] = 567;
  (*check.mutable_events_by_kind())["alloc"] = 1234000;
  check.set_peak_requested(3 << 20);
  check.set_peak_phase("it0.b\xffwd\n");
  proto::PhaseCheck* before = check.add_phases();
  before->set_events(2);
  before->set_leaks(2);
  before->set_leaked_bytes(1 << 20);
  before->set_peak_requested(1 << 20);
  proto::PhaseCheck* backward = check.add_phases();
  backward->set_phase("it0.b\xffwd\n");
  backward->set_events(1234565);
  backward->set_peak_requested(3 << 20);
  return check;
}

TEST(RenderProgramCheck, TellsPhasesAndWhatIsLeft) {
  EXPECT_EQ(RenderProgramCheck(Sample()),
            "a.txtpb: 1,234,567 events; at most 3.00 MiB (3,145,728 bytes) requested at once, in "
            "it0.b?wd?.\n"
            "\n"
            "  alloc              1,234,000\n"
            "  mark               567\n"
            "\n"
            "        events        peak         live at the end  phase\n"
            "             2    1.00 MiB           2 of 1.00 MiB  before the first phase\n"
            "     1,234,565    3.00 MiB                       -  it0.b?wd?\n");
}

TEST(RenderProgramCheck, JsonIsText) {
  const std::string json = RenderProgramCheckJson(Sample());
  EXPECT_NE(json.find("\"peak_phase\": \"it0.b?wd?\""), std::string::npos) << json;
  EXPECT_NE(json.find("\"leaked_bytes\": 1048576"), std::string::npos) << json;
}

}  // namespace
}  // namespace memreplay
