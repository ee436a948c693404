// Scalars in TensorBoard's format: a file of records, each a length, its checksum, a message "Event" of Protocol Buffers, and its checksum
// (tensorflow's record_writer and event.proto describe both).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace starling {

// Returns the CRC-32C of bytes (polynomial 0x1EDC6F41, reflected), as RFC 3720 defines it.
uint32_t crc32c(std::string_view bytes);

// Returns a record with an event of scalars. seconds: since 1970.
using Scalars = std::vector<std::pair<std::string, double>>;
std::string tensorboard_record(double seconds, int64_t step, const Scalars& scalars);
// Returns the record by which TensorBoard forgets what it has of this step and later ones: a run that resumes, or goes back, repeats them.
std::string tensorboard_restart(double seconds, int64_t step);
// Returns the record that begins every file.
std::string tensorboard_header(double seconds);

}  // namespace starling
