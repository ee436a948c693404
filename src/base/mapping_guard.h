// Mapped files that others cut short. The system answers a read behind a file's new end with SIGBUS, which ends the program; within a
// guarded mapping it finds zeros instead, and whoever has read asks the guard whether what he has is what the file had.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace starling {

class MappingGuard {
 public:
  /// Guards a mapping while this object lives; `path` is for the message. Without a place to note it (there are some 100,000), the mapping
  /// is as any other.
  MappingGuard(std::span<const std::byte> bytes, std::string path);

  /// IoError, naming the file, when something of the mapping could not be read since the guard was made. To be asked behind the reading.
  void require_whole() const;

 private:
  struct Release {
    void operator()(size_t* slot) const;
  };
  std::string path_;
  std::unique_ptr<size_t, Release> slot_;  // null: none
};

}  // namespace starling
