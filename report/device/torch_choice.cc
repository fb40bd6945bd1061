#include <string>

#include "report/device/device_report.h"
#include "report/words/torch_reason.h"
#include "sim/settings/torch_profile.h"

namespace memreplay {
namespace {

proto::TorchProfileChoice::Reason ReasonOf(ProfileReason reason) {
  switch (reason) {
    case ProfileReason::kGiven: break;
    case ProfileReason::kInFile: return proto::TorchProfileChoice::in_file;
    case ProfileReason::kDefault: return proto::TorchProfileChoice::unnamed;
    case ProfileReason::kLayout: return proto::TorchProfileChoice::layout;
    case ProfileReason::kReproduces: return proto::TorchProfileChoice::reproduces;
    case ProfileReason::kReproducesMost: return proto::TorchProfileChoice::reproduces_most;
    case ProfileReason::kNewestKey: return proto::TorchProfileChoice::newest_key;
    case ProfileReason::kUnknownLayout: return proto::TorchProfileChoice::unknown_layout;
  }
  return proto::TorchProfileChoice::given;
}

}  // namespace

proto::TorchProfileChoice DescribeChoice(const ProfileChoice& choice) {
  proto::TorchProfileChoice described;
  described.set_release(std::string(choice.profile->release));
  described.set_inferred(choice.inferred());
  described.set_reason(ReasonOf(choice.reason));
  if (choice.fitting.size() < AllTorchProfiles().size()) {
    for (const TorchProfile* profile : choice.fitting) {
      described.add_fitting(std::string(profile->release));
    }
  }
  for (const std::string& key : choice.evidence) described.add_evidence(key);
  if (choice.rejected != nullptr) {
    described.set_rejected(std::string(choice.rejected->release));
    described.set_rejected_at_event(static_cast<int64_t>(choice.rejected_at));
  }
  described.set_why(TorchReason(described));
  return described;
}

proto::TorchProfileChoice DescribeChoice(const TorchProfile& profile, bool is_given) {
  proto::TorchProfileChoice described;
  described.set_release(std::string(profile.release));
  described.set_reason(is_given ? proto::TorchProfileChoice::given
                                : proto::TorchProfileChoice::no_file);
  described.set_why(TorchReason(described));
  return described;
}

}  // namespace memreplay
