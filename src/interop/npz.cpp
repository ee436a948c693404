#include "interop/npz.h"

#include <charconv>
#include <cstring>

#include "base/error.h"
#include "base/quotes.h"
#include "formats/zip.h"

namespace starling {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr int kMostDimensions = 8;

// The text behind 'KEY': in a header, a Python dictionary: "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }".
std::string_view value_of(std::string_view header, const std::string& key) {
  const size_t at = header.find("'" + key + "':");
  if (at == std::string_view::npos) return {};
  header.remove_prefix(at + key.size() + 3);
  return header.substr(std::min(header.find_first_not_of(' '), header.size()));
}

}  // namespace

ForeignArray read_npy(ArrayBytes content, const std::string& where) {
  const auto broken = [&](const std::string& why) { throw DataError(fmt::format("{}: not a NumPy array ({})", where, why)); };
  if (!content.starts_with(kMagic) || content.size() < 12) broken("it does not start with NumPy's signature");
  const int version = content[6];
  if (version < 1 || version > 3) broken(fmt::format("its format has version {}", version));
  uint32_t length = 0;
  std::memcpy(&length, content.data() + 8, version == 1 ? 2 : 4);
  const size_t begin = version == 1 ? 10 : 12;
  if (length > content.size() - begin) broken("its header is cut short");
  const std::string_view header(content.data() + begin, length), type = value_of(header, "descr");
  if (type.size() < 5 || type[0] != '\'' || (type[1] != '<' && type[1] != '|') || type[4] != '\'')
    broken(fmt::format("its elements have the unsupported type {}", printable(type.substr(0, type.find(',')))));
  if (!value_of(header, "fortran_order").starts_with("False")) broken("its columns are stored one after another; save it in C order");
  ForeignArray array{.type = std::string(type.substr(2, 2))};
  std::string_view shape = value_of(header, "shape");
  if (!shape.starts_with('(')) broken("it has no shape");
  const auto item = static_cast<uint64_t>(array.type[1] - '0');
  uint64_t bytes = item;
  for (shape.remove_prefix(1); !shape.starts_with(')');) {
    int64_t size = 0;
    const auto [stop, error] = std::from_chars(shape.data(), shape.data() + shape.size(), size);
    if (error != std::errc() || size < 0 || array.shape.size() == kMostDimensions) broken("its shape is damaged");
    shape.remove_prefix(static_cast<size_t>(stop - shape.data()));
    shape.remove_prefix(std::min(shape.find_first_not_of(", "), shape.size()));
    if (shape.empty()) broken("its shape is damaged");
    if (size > 0 && bytes > content.size() / static_cast<uint64_t>(size)) broken("it is cut short");
    bytes *= static_cast<uint64_t>(size);
    array.shape.push_back(size);
  }
  if (item < 1 || item > 8 || bytes != content.size() - begin - length)
    broken(fmt::format("{} bytes of elements, but its shape needs {}", content.size() - begin - length, bytes));
  content.remove_prefix(begin + length);
  array.bytes = std::move(content);
  return array;
}

std::string npz_of(std::span<const ForeignArray> arrays) {
  constexpr size_t kAlign = 64;  // of the elements
  std::vector<std::pair<std::string, std::string>> files;
  for (const ForeignArray& a : arrays) {
    const std::string shape = fmt::format("({}{})", fmt::join(a.shape, ", "), a.shape.size() == 1 ? "," : "");
    std::string header =
        fmt::format("{{'descr': '{}{}', 'fortran_order': False, 'shape': {}, }}", a.type[1] == '1' ? '|' : '<', a.type, shape);
    header.resize((header.size() + 1 + 10 + kAlign - 1) / kAlign * kAlign - 11, ' ');
    header += '\n';
    std::string content(kMagic);
    content += std::string_view("\1\0", 2);
    content += static_cast<char>(header.size() & 0xff);
    content += static_cast<char>(header.size() >> 8);
    files.emplace_back(a.name + ".npy", (content + header).append(a.bytes));
  }
  return zip_archive(files);
}

std::vector<ForeignArray> read_npz(std::span<const std::byte> bytes, const std::string& where, ByteBudget& budget) {
  const ZipArchive zip(bytes, where);
  std::vector<ForeignArray> arrays;
  for (const ZipEntry& entry : zip.entries()) {
    const std::string name = printable(entry.name);
    if (name != entry.name || !name.ends_with(".npy")) throw DataError(fmt::format("{}: {} in it is not an array", where, name));
    if (entry.deflated) budget.take(entry.size, where, "unpacking it");
    arrays.push_back(
        read_npy(entry.deflated ? ArrayBytes(zip.read(entry)) : ArrayBytes(zip.stored(entry)), fmt::format("{}: {}", where, name)));
    arrays.back().name = name.substr(0, name.size() - 4);
  }
  return arrays;
}

}  // namespace starling
