// Archives made in memory.
#pragma once

#include <zlib.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace starling {

inline std::string bytes_of(uint64_t value, int count) {
  std::string bytes;
  for (int i = 0; i < count; ++i) bytes += i < 8 ? static_cast<char>(value >> (8 * i)) : '\0';
  return bytes;
}

// A zip archive of these files, every second one deflated if `deflate`.
inline std::string zip_of(const std::vector<std::pair<std::string, std::string>>& files, bool deflate = false) {
  std::string archive, directory;
  bool now = false;
  for (const auto& [name, content] : files) {
    std::string packed = content;
    if (deflate && (now = !now)) {
      packed.resize(compressBound(content.size()));
      z_stream stream{};
      deflateInit2(&stream, 6, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
      stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(content.data()));
      stream.avail_in = static_cast<uInt>(content.size());
      stream.next_out = reinterpret_cast<Bytef*>(packed.data());
      stream.avail_out = static_cast<uInt>(packed.size());
      ::deflate(&stream, Z_FINISH);
      packed.resize(stream.total_out);
      deflateEnd(&stream);
    }
    const std::string head = bytes_of(20, 2) + bytes_of(0, 2) + bytes_of(deflate && now ? 8 : 0, 2) + bytes_of(0, 4) +
                             bytes_of(crc32(0, reinterpret_cast<const Bytef*>(content.data()), static_cast<uInt>(content.size())), 4) +
                             bytes_of(packed.size(), 4) + bytes_of(content.size(), 4) + bytes_of(name.size(), 2) + bytes_of(0, 2);
    directory += bytes_of(0x02014b50, 4) + bytes_of(20, 2) + head + bytes_of(0, 10) + bytes_of(archive.size(), 4) + name;
    archive += bytes_of(0x04034b50, 4) + head + name + packed;
  }
  const size_t start = archive.size();
  return archive + directory + bytes_of(0x06054b50, 4) + bytes_of(0, 4) + bytes_of(files.size(), 2) + bytes_of(files.size(), 2) +
         bytes_of(directory.size(), 4) + bytes_of(start, 4) + bytes_of(0, 2);
}

// An array of NumPy's with this description: "'<f4'" and "(3, 4)".
inline std::string npy_of(const std::string& type, const std::string& shape, const std::string& elements) {
  std::string header = "{'descr': " + type + ", 'fortran_order': False, 'shape': " + shape + ", }";
  header.resize((header.size() + 10 + 63) / 64 * 64 - 10, ' ');
  return std::string("\x93NUMPY\x01", 7) + '\0' + bytes_of(header.size(), 2) + header + elements;
}

}  // namespace starling
