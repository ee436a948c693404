#include "doctor/doctor.h"

namespace starling {

std::vector<Examined> examine_other_host(const Config& config, const std::string& complaint) {
  std::vector<Examined> all{examine_machine()};
  if (!complaint.empty()) {
    all.push_back({"configuration",
                   {{Level::problem, complaint, "give that host the same configuration and program, under the same paths (rsync)"}}});
    return all;
  }
  all.push_back(examine_disk(config.train.output, 0, 0));  // rank 0's host has the checkpoints
  all.push_back(examine_text_files(config));
  return all;
}

}  // namespace starling
