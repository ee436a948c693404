#include "interop/ct2_file.h"

#include <cstring>

#include "interop/foreign_bytes.h"

namespace starling {
namespace {

constexpr uint32_t kNewest = 6, kMostVariables = 50'000;
constexpr int kMostCt2Rank = 8;

// A length that includes the NUL behind the text.
std::string text_in(ForeignBytes& in) {
  const std::string_view all = in.take(in.number<uint16_t>());
  if (all.empty() || all.back() != '\0') in.broken("a name in it has no end");
  return in.name(all.substr(0, all.size() - 1));
}

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) text.replace(at, from.size(), to);
}

// The names of version 1 are TensorFlow's.
std::string name_of_today(std::string name) {
  constexpr std::string_view kBefore = "transformer/";
  if (!name.starts_with(kBefore)) return name;
  name.erase(0, kBefore.size());
  replace_all(name, ":0", "");
  replace_all(name, "w_embs", "embeddings/weight");
  replace_all(name, "masked_multi_head", "self_attention");
  replace_all(name, "multi_head", name.starts_with("encoder") ? "self_attention" : "attention");
  replace_all(name, "LayerNorm", "layer_norm");
  replace_all(name, "conv1d_2", "linear_2");
  replace_all(name, "conv1d_1", "linear_1");
  replace_all(name, "conv1d", "linear_0");
  replace_all(name, "kernel", "weight");
  replace_all(name, "dense", "projection");
  return name;
}

// Types by their numbers from version 4 on, and by the bytes of an element before.
std::string type_of(uint32_t version, int code, const ForeignBytes& in) {
  if (version >= 4) {
    constexpr const char* types[] = {"f4", "i1", "i2", "i4", "f2", "b2"};
    if (code > 5) in.broken(fmt::format("its elements have the unsupported type {}", code));
    return types[code];
  }
  if (code != 1 && code != 2 && code != 4) in.broken(fmt::format("its elements have the unsupported size of {} bytes", code));
  return code == 4 ? "f4" : code == 2 ? "i2" : "i1";
}

}  // namespace

const ForeignArray* Ct2File::find(const std::string& name) const {
  const auto alias = aliases.find(name);
  const auto found = arrays.find(alias == aliases.end() ? name : alias->second);
  return found == arrays.end() ? nullptr : &found->second;
}

double Ct2File::number(const std::string& name, double otherwise) const {
  const ForeignArray* a = find(name);
  if (!a || !a->shape.empty()) return otherwise;
  const auto as = [&](auto value) {
    std::memcpy(&value, a->bytes.data(), sizeof value);
    return static_cast<double>(value);
  };
  if (a->type == "f4") return as(float{});
  if (a->type == "i4") return as(int32_t{});
  if (a->type == "i2") return as(int16_t{});
  if (a->type == "i1") return as(int8_t{});
  return otherwise;
}

bool is_ct2(std::string_view bytes) {
  uint32_t head[2];
  if (bytes.size() < sizeof head) return false;
  std::memcpy(head, bytes.data(), sizeof head);
  if (head[0] < 1 || head[0] > kNewest) return false;
  return head[0] == 1 ? head[1] > 0 && head[1] <= kMostVariables : (head[1] & 0xffff) > 1 && (head[1] & 0xffff) < 256;
}

Ct2File read_ct2(std::string_view bytes, const std::string& where) {
  ForeignBytes in(bytes, where, "a CTranslate2 model");
  Ct2File file;
  file.version = in.number<uint32_t>();
  if (file.version < 1 || file.version > kNewest)
    in.broken(fmt::format("its binary version is {}, but only 1 to {} are supported", file.version, kNewest));
  if (file.version >= 2) {
    file.spec = text_in(in);
    file.revision = in.number<uint32_t>();
  }
  const auto count = in.number<uint32_t>();
  if (count > kMostVariables) in.broken(fmt::format("it has {} variables", count));
  for (uint32_t i = 0; i < count; ++i) {
    ForeignArray a;
    a.name = name_of_today(text_in(in));
    const int rank = in.number<uint8_t>();
    if (rank > kMostCt2Rank) in.broken(fmt::format("{} has {} dimensions", a.name, rank));
    uint64_t elements = 1;
    for (int k = 0; k < rank; ++k) {
      a.shape.push_back(in.number<uint32_t>());
      const auto n = static_cast<uint64_t>(a.shape.back());
      if (n > 0 && elements > in.size() / n) in.broken(fmt::format("the shape of {} does not match its data", a.name));
      elements *= n;
    }
    a.type = type_of(file.version, in.number<uint8_t>(), in);
    const auto item = static_cast<uint64_t>(a.type[1] - '0');
    uint64_t size = in.number<uint32_t>();  // bytes, or elements before version 4
    if (file.version < 4) size *= item;
    if (size != elements * item) in.broken(fmt::format("the shape of {} does not match its data", a.name));
    a.bytes = in.take(size);
    const std::string name = a.name;
    if (!file.arrays.emplace(name, std::move(a)).second) in.broken(fmt::format("{} occurs twice", name));
  }
  if (file.version < 3) return file;
  const auto aliases = in.number<uint32_t>();
  if (aliases > kMostVariables) in.broken(fmt::format("it has {} aliases", aliases));
  for (uint32_t i = 0; i < aliases; ++i) {
    const std::string alias = text_in(in), name = text_in(in);
    if (!file.arrays.contains(name)) in.broken(fmt::format("{} refers to {}, which is missing", alias, name));
    file.aliases[alias] = name;
  }
  return file;
}

}  // namespace starling
