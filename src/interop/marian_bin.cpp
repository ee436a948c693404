// The file is: version and number of arrays; for each the bytes of its name, its type, rank and bytes; the names; the shapes; padding, so
// that data begins at a multiple of 256; the data, each array padded to a multiple of 256. Numbers have 64 bits, sizes of shapes 32.
#include "interop/marian_bin.h"

#include "interop/foreign_bytes.h"

namespace starling {
namespace {

enum : uint64_t { kFloat = 0x404, kByte = 0x101, kIntgemm = 0x4101, kIntgemmOfMarian = 0x10001 };
constexpr uint64_t kVersion = 1, kMostArrays = 100'000, kMostRank = 8, kAlignment = 256;

struct Head {
  uint64_t name_bytes, type, rank, bytes;
};

bool is_table(const std::string& name) { return name.ends_with("Wemb"); }

void pad(std::string& to) { to.resize((to.size() + kAlignment - 1) / kAlignment * kAlignment, '\0'); }

}  // namespace

bool is_marian_bin(std::string_view bytes) {
  uint64_t head[2];
  if (bytes.size() < sizeof head) return false;
  std::memcpy(head, bytes.data(), sizeof head);
  return head[0] == kVersion && head[1] > 0 && head[1] <= kMostArrays;
}

std::vector<ForeignArray> read_marian_bin(std::string_view bytes, const std::string& where) {
  ForeignBytes in(bytes, where, "a binary Marian model");
  if (const auto version = in.number<uint64_t>(); version != kVersion)
    in.broken(fmt::format("its version is {}, but only {} is supported", version, kVersion));
  const auto count = in.number<uint64_t>();
  if (count > kMostArrays) in.broken(fmt::format("it has {} arrays", count));
  std::vector<Head> heads;
  for (uint64_t i = 0; i < count; ++i) {
    Head h{};
    for (uint64_t* n : {&h.name_bytes, &h.type, &h.rank, &h.bytes}) *n = in.number<uint64_t>();
    if (h.rank > kMostRank) in.broken(fmt::format("array {} has {} dimensions", i + 1, h.rank));
    heads.push_back(h);
  }
  std::vector<ForeignArray> arrays(heads.size());
  for (size_t i = 0; i < heads.size(); ++i) {
    const std::string_view name = in.take(heads[i].name_bytes);
    arrays[i].name = in.name(name.substr(0, name.find('\0')));
  }
  for (size_t i = 0; i < heads.size(); ++i)
    for (uint64_t k = 0; k < heads[i].rank; ++k) arrays[i].shape.push_back(in.number<int32_t>());
  in.take(in.number<uint64_t>());
  for (size_t i = 0; i < heads.size(); ++i) {
    ForeignArray& a = arrays[i];
    const std::string_view data = in.take(heads[i].bytes);
    uint64_t elements = 1;
    for (const int64_t n : a.shape) {
      if (n < 1 || elements > data.size() / static_cast<uint64_t>(n))
        in.broken(fmt::format("the shape of {} does not match its data", a.name));
      elements *= static_cast<uint64_t>(n);
    }
    const uint64_t type = heads[i].type, item = type == kFloat ? 4 : 1;
    const bool integers = type == kIntgemm || type == kIntgemmOfMarian;
    if (type != kFloat && type != kByte && !integers)
      throw ConfigError(
          fmt::format("{}: {} has elements of type {:#x}, neither f32 nor intgemm8; convert the model with marian-conv to one of these",
                      where, a.name, type));
    if (elements * item + (integers ? sizeof(float) : 0) > data.size())
      in.broken(fmt::format("the shape of {} does not match its data", a.name));
    a.bytes = data.substr(0, elements * item);
    a.type = type == kFloat ? "f4" : integers ? "q8" : "i1";
    if (!integers) continue;
    float multiplier = 0;
    std::memcpy(&multiplier, data.data() + elements, sizeof multiplier);
    if (!(multiplier > 0)) in.broken(fmt::format("{} has the multiplier {}", a.name, multiplier));
    a.unit = 1 / multiplier;
    // Matrices lie the other way round than their shape says; the embedding does not.
    if (a.shape.size() == 2 && !is_table(a.name)) a.bytes = element_bytes(transposed(elements_of<char>(a.bytes), a.shape[1], a.shape[0]));
  }
  return arrays;
}

std::string marian_bin(std::span<const ForeignArray> arrays) {
  std::string heads, names, shapes, data;
  for (const ForeignArray& a : arrays) {
    const bool integers = a.type == "q8";
    CHECK(integers || a.type == "f4" || a.type == "i1", "{} of type {}", a.name, a.type);
    std::string bytes(a.bytes);
    int64_t elements = 1;
    for (const int64_t n : a.shape) elements *= n;
    CHECK(std::ssize(bytes) == elements * (a.type == "f4" ? 4 : 1), "{}: {} bytes for {} elements of {}", a.name, bytes.size(), elements,
          a.type);
    if (integers && a.shape.size() == 2 && !is_table(a.name))
      bytes = element_bytes(transposed(elements_of<char>(bytes), a.shape[0], a.shape[1]));
    if (integers) {
      const float multiplier = 1 / a.unit;
      bytes.append(reinterpret_cast<const char*>(&multiplier), sizeof multiplier);
    }
    pad(bytes);
    append_number(heads, a.name.size() + 1, 8);
    append_number(heads, integers ? kIntgemm : a.type == "f4" ? kFloat : kByte, 8);
    append_number(heads, a.shape.size(), 8);
    append_number(heads, bytes.size(), 8);
    names += a.name + '\0';
    for (const int64_t n : a.shape) append_number(shapes, static_cast<uint64_t>(n), 4);
    data += bytes;
  }
  std::string file;
  append_number(file, kVersion, 8);
  append_number(file, arrays.size(), 8);
  file += heads + names + shapes;
  const size_t begin = file.size() + 8, padding = (kAlignment - begin % kAlignment) % kAlignment;
  append_number(file, padding, 8);
  return file.append(padding, '\0').append(data);
}

}  // namespace starling
