// The hosts of a launch, from --hosts or --hostfile, read here so that what is wrong with them is told in one line: mpirun answers with
// pages about itself.
#pragma once

#include <string>
#include <vector>

namespace starling {

struct LaunchHost {
  std::string name;
  int slots = 0;  // ranks that it has room for; 0: as many as it has cores
};

/// The hosts of a list, "alpha:2, beta"; a host alone has room for one rank, one that is named several times for all of them. ConfigError
/// naming the entry that is wrong.
std::vector<LaunchHost> hosts_of_list(const std::string& list);

/// The hosts of a host file as mpirun knows it: a line for each, "alpha slots=2", with comments behind #. A host alone has room for as
/// many ranks as it has cores, or, named on several lines, for one a line. ConfigError or IoError naming file and line.
std::vector<LaunchHost> hosts_of_file(const std::string& path);

/// As mpirun's option --host takes them.
std::string host_list(const std::vector<LaunchHost>& hosts);

}  // namespace starling
