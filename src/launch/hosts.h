// Parses the hosts of a launch, from --hosts or --hostfile, so that a mistake is reported in one line; mpirun would answer with pages about
// itself.
#pragma once

#include <string>
#include <vector>

namespace starling {

struct LaunchHost {
  std::string name;
  int slots = 0;  // ranks that fit on the host; 0: one per core
};

/// Parses a list such as "alpha:2, beta". A host without a number has room for one rank; if it is named repeatedly, for one rank each time.
/// Throws ConfigError naming the wrong entry.
std::vector<LaunchHost> hosts_of_list(const std::string& list);

/// Parses a host file in mpirun's format: one host per line, "alpha slots=2", with comments after #. A host without slots has room for one
/// rank per core or, if it is named on several lines, for one rank per line. Throws ConfigError or IoError naming file and line.
std::vector<LaunchHost> hosts_of_file(const std::string& path);

/// Formats the hosts for mpirun's option --host.
std::string host_list(const std::vector<LaunchHost>& hosts);

}  // namespace starling
