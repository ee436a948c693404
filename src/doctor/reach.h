// Whether ranks can be started on other hosts, asked before they are, since mpirun does not say which host does not answer.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "doctor/doctor.h"
#include "launch/commands.h"

namespace starling {

// In all little more than a minute, whatever does not answer, and then the examination.
struct ReachLimits {
  CommandLimits ssh{12};       // to all hosts at once
  CommandLimits start{15};     // of a process on each host, by one mpirun
  CommandLimits one_host{10};  // if that has failed: of one on each host in turn,
  double one_by_one_s = 25;    // for so long
  CommandLimits examination{50};
};

// Asks each host by ssh, or by the program that OMPI_MCA_plm_rsh_agent names, and then those that answer by mpirun_for(hosts): mpirun that
// starts a short process on each of these hosts. Throws ConfigError if there is no mpirun.
using MpirunFor = std::function<std::vector<std::string>(const std::vector<std::string>& hosts)>;
Examined examine_reach(const std::vector<std::string>& hosts, const MpirunFor& mpirun_for, const ReachLimits& limits = {});

// Runs mpirun with a doctor on each of these hosts and passes on what they print. Returns its exit status, and what there is to say if it
// had to be ended.
struct JointEnd {
  int status = 0;
  Examined ended{"hosts", {}};
};
JointEnd run_on_hosts(const std::vector<std::string>& hosts, const std::vector<std::string>& mpirun, const ReachLimits& limits = {});

}  // namespace starling
