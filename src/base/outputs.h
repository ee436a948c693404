// An output that is one of the inputs would be emptied before it is read. Every verb that writes asks here first, before it opens anything.
#pragma once

#include <string>
#include <vector>

namespace starling {

// A path as the user gave it; "-" is standard output or input. `name` is what messages call it: "--output".
struct NamedPath {
  std::string name, path;
};

// ConfigError naming both when the output is one of the inputs by whatever name (another spelling, a hard or symbolic link, /dev/fd/N, a
// redirection), or when it would lie in an input that is a directory. Devices, pipes and terminals are nobody's input.
void refuse_own_input(const NamedPath& output, const std::vector<NamedPath>& inputs);

}  // namespace starling
