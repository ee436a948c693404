// One rule validates the layout: sorted by offset, each tensor begins where the previous one ends, and the last ends at the end of the
// file. This excludes overlaps, gaps and offsets outside the file at once. Sizes must also match shape and dtype.
#include "storage/safetensors.h"

#include <algorithm>
#include <bit>
#include <set>

#include "base/json.h"
#include "base/quotes.h"

namespace starling {
namespace {

using Json = nlohmann::json;

static_assert(std::endian::native == std::endian::little, "the layout is little-endian and tensors are written as they lie in memory");

constexpr uint64_t prefix_bytes = 8;
constexpr uint64_t header_limit_bytes = 100'000'000;  // the limit of the reference implementation
constexpr uint64_t data_alignment = 64;               // the data begins on a cache line of the mapped file

struct DtypeSize {
  std::string_view name;
  int64_t bytes;
};
constexpr DtypeSize dtype_sizes[] = {{"F32", 4}, {"F64", 8}, {"BF16", 2}, {"F16", 2}, {"I8", 1}, {"I32", 4}, {"I64", 8}, {"U8", 1}};

// Returns the bytes of a tensor; -1 if a dimension is negative or the product overflows.
int64_t tensor_bytes(const std::vector<int64_t>& shape, int64_t element_bytes) {
  int64_t bytes = element_bytes;
  for (const int64_t dimension : shape) {
    if (dimension < 0 || __builtin_mul_overflow(bytes, dimension, &bytes)) return -1;
  }
  return bytes;
}

// ---- writing ----

uint64_t bytes_of(const NamedBytes& tensor) { return static_cast<uint64_t>(tensor_bytes(tensor.shape, dtype_bytes(tensor.dtype))); }

std::vector<const NamedBytes*> in_file_order(std::span<const NamedBytes> tensors) {
  std::vector<const NamedBytes*> order;
  std::set<std::string_view> names;
  for (const NamedBytes& tensor : tensors) {
    CHECK(dtype_bytes(tensor.dtype) > 0, "tensor '{}' has the unknown dtype '{}'", tensor.name, tensor.dtype);
    CHECK(tensor.source || tensor_bytes(tensor.shape, dtype_bytes(tensor.dtype)) == static_cast<int64_t>(tensor.data.size()),
          "tensor '{}' has {} bytes, which is not what its shape [{}] of {} takes", tensor.name, tensor.data.size(),
          fmt::join(tensor.shape, ", "), tensor.dtype);
    CHECK(!tensor.name.empty() && tensor.name != "__metadata__", "'{}' cannot name a tensor", tensor.name);
    CHECK(names.insert(tensor.name).second, "there are two tensors named '{}'", tensor.name);
    order.push_back(&tensor);
  }
  const auto wider = [](const NamedBytes* a, const NamedBytes* b) { return dtype_bytes(a->dtype) > dtype_bytes(b->dtype); };
  std::stable_sort(order.begin(), order.end(), wider);
  return order;
}

// The header's text, padded with spaces so that the data is aligned.
std::string make_header(const std::vector<const NamedBytes*>& order, const SafetensorsMetadata& metadata) {
  std::string text = "{";  // assembled as text, since ordered_json searches all entries before it adds one
  const auto add = [&](const std::string& name, const nlohmann::ordered_json& value) {
    text += text.size() > 1 ? "," : "";
    text += Json(name).dump() + ":" + value.dump();
  };
  try {
    if (!metadata.empty()) add("__metadata__", metadata);
    uint64_t at = 0;
    for (const NamedBytes* tensor : order) {
      const uint64_t end = at + bytes_of(*tensor);
      add(tensor->name, {{"dtype", tensor->dtype}, {"shape", tensor->shape}, {"data_offsets", {at, end}}});
      at = end;
    }
  } catch (const Json::exception& error) {
    CHECK(false, "a tensor's name or the metadata is not UTF-8: {}", error.what());
  }
  text += "}";
  const uint64_t used = prefix_bytes + text.size();
  text.append((data_alignment - used % data_alignment) % data_alignment, ' ');
  CHECK(text.size() <= header_limit_bytes, "a safetensors header of {} bytes", text.size());
  return text;
}

// ---- reading ----

class Reader {
 public:
  Reader(std::span<const std::byte> bytes, const std::string& where, ByteBudget& budget) : bytes_(bytes), where_(where), budget_(budget) {}

  SafetensorsContent read() {
    const std::string_view header = header_text();
    data_ = bytes_.subspan(prefix_bytes + header.size());
    const Json json = parse_json_object(header, where_, budget_);
    SafetensorsContent content;
    for (const auto& [name, entry] : json.items()) {
      if (name == "__metadata__") {
        content.metadata = metadata(entry);
      } else {
        content.tensors.push_back(tensor(name, entry));
      }
    }
    require_no_gaps(content.tensors);
    return content;
  }

 private:
  template <class... Values>
  [[noreturn]] void fail(fmt::format_string<Values...> message, Values&&... values) const {
    throw DataError(fmt::format("{}: not a valid safetensors file: {}; copy or export it again", where_,
                                fmt::format(message, std::forward<Values>(values)...)));
  }

  // The beginning of a list that may be long.
  static std::string numbers(const std::vector<int64_t>& list) { return printable(fmt::format("{}", fmt::join(list, ", "))); }

  std::string_view header_text() const {
    if (bytes_.size() < prefix_bytes) fail("it has {} bytes and ends before the header length", bytes_.size());
    uint64_t length = 0;
    for (uint64_t i = 0; i < prefix_bytes; ++i) length |= std::to_integer<uint64_t>(bytes_[i]) << (8 * i);
    if (length > header_limit_bytes) fail("its header length is {}, above the limit of {}", length, header_limit_bytes);
    const uint64_t available = bytes_.size() - prefix_bytes;
    if (length > available) fail("its header length is {}, but only {} bytes follow", length, available);
    const std::string_view text(reinterpret_cast<const char*>(bytes_.data()) + prefix_bytes, length);
    if (!text.starts_with('{')) fail("its header does not begin with '{{'");
    return text;
  }

  SafetensorsMetadata metadata(const Json& entry) const {
    if (!entry.is_object()) fail("__metadata__ is not an object");
    SafetensorsMetadata values;
    for (const auto& [key, value] : entry.items()) {
      if (!value.is_string()) fail("the metadata value {} is not a string", in_quotes(key));
      values[key] = value.get<std::string>();
    }
    return values;
  }

  // Returns a list of non-negative integers that fit an int64_t.
  std::vector<int64_t> integers(const std::string& name, const Json& entry, const char* key) const {
    const Json& list = entry.at(key);
    if (!list.is_array()) fail("{} of tensor {} is not a list", key, in_quotes(name));
    std::vector<int64_t> values;
    for (const Json& value : list) {
      if (!value.is_number_unsigned() || value.get<uint64_t>() > uint64_t{INT64_MAX}) {
        fail("{} of tensor {} holds {}, which is not a size", key, in_quotes(name), printable(value.dump()));
      }
      values.push_back(value.get<int64_t>());
    }
    return values;
  }

  NamedBytes tensor(const std::string& name, const Json& entry) const {
    const bool complete = entry.is_object() && entry.size() == 3 && entry.contains("dtype") && entry.contains("shape") &&
                          entry.contains("data_offsets") && entry["dtype"].is_string();
    if (!complete) fail("tensor {} does not have exactly dtype, shape and data_offsets", in_quotes(name));
    NamedBytes tensor{name, entry["dtype"].get<std::string>(), integers(name, entry, "shape"), {}};
    const int64_t element_bytes = dtype_bytes(tensor.dtype);
    if (element_bytes == 0)
      fail("tensor {} has the dtype {}, known are F32, F64, BF16, F16, I8, I32, I64, U8", in_quotes(name), in_quotes(tensor.dtype));
    const std::vector<int64_t> place = integers(name, entry, "data_offsets");
    if (place.size() != 2 || place[0] > place[1] || static_cast<uint64_t>(place[1]) > data_.size()) {
      fail("tensor {} lies at [{}] of {} data bytes, as in a file that was cut short", in_quotes(name), numbers(place), data_.size());
    }
    const int64_t bytes = tensor_bytes(tensor.shape, element_bytes);
    if (bytes != place[1] - place[0]) {
      fail("tensor {} takes {} bytes, not those of shape [{}] in {}", in_quotes(name), place[1] - place[0], numbers(tensor.shape),
           tensor.dtype);
    }
    tensor.data = data_.subspan(static_cast<size_t>(place[0]), static_cast<size_t>(bytes));
    return tensor;
  }

  void require_no_gaps(std::vector<NamedBytes>& tensors) const {
    const auto earlier = [](const NamedBytes& a, const NamedBytes& b) {
      return std::pair(a.data.data(), a.data.size()) < std::pair(b.data.data(), b.data.size());
    };
    std::stable_sort(tensors.begin(), tensors.end(), earlier);
    const std::byte* end = data_.data();
    for (const NamedBytes& tensor : tensors) {
      if (tensor.data.data() < end) fail("tensor {} overlaps another", in_quotes(tensor.name));
      if (tensor.data.data() > end) fail("there are unused bytes before tensor {}", in_quotes(tensor.name));
      end += tensor.data.size();
    }
    const int64_t rest = data_.data() + data_.size() - end;
    if (rest != 0) fail("{} bytes at the end belong to no tensor", rest);
  }

  std::span<const std::byte> bytes_, data_;
  const std::string& where_;
  ByteBudget& budget_;
};

}  // namespace

int64_t dtype_bytes(std::string_view dtype) {
  for (const auto& [name, bytes] : dtype_sizes) {
    if (name == dtype) return bytes;
  }
  return 0;
}

void write_safetensors(ByteSink& sink, std::span<const NamedBytes> tensors, const SafetensorsMetadata& metadata) {
  const auto order = in_file_order(tensors);
  const std::string header = make_header(order, metadata);
  std::string prefix;
  for (uint64_t i = 0; i < prefix_bytes; ++i) prefix += static_cast<char>(header.size() >> (8 * i) & 255);
  sink.write(prefix + header);
  for (const NamedBytes* tensor : order) tensor->source ? tensor->source(sink) : sink.write(tensor->data);
}

uint64_t safetensors_size(std::span<const NamedBytes> tensors, const SafetensorsMetadata& metadata) {
  const auto order = in_file_order(tensors);
  uint64_t bytes = prefix_bytes + make_header(order, metadata).size();
  for (const NamedBytes* tensor : order) bytes += bytes_of(*tensor);
  return bytes;
}

SafetensorsContent parse_safetensors(std::span<const std::byte> bytes, const std::string& where, ByteBudget& budget) {
  return Reader(bytes, where, budget).read();
}

SafetensorsContent parse_safetensors(std::span<const std::byte> bytes, const std::string& where) {
  ByteBudget budget(bytes.size());
  return parse_safetensors(bytes, where, budget);
}

SafetensorsFile::SafetensorsFile(FileSystem& files, const std::string& path)
    : path_(path), mapping_(files.map(path)), guard_(mapping_->bytes(), path) {
  try {
    content_ = parse_safetensors(mapping_->bytes(), path);
  } catch (const DataError&) {
    require_whole();  // otherwise parsing would complain about zeros
    throw;
  }
  require_whole();
  for (size_t i = 0; i < content_.tensors.size(); ++i) index_.emplace(content_.tensors[i].name, i);
}

const NamedBytes* SafetensorsFile::find(std::string_view name) const {
  const auto found = index_.find(name);
  return found == index_.end() ? nullptr : &content_.tensors[found->second];
}

const NamedBytes& SafetensorsFile::at(std::string_view name) const {
  const NamedBytes* tensor = find(name);
  if (tensor != nullptr) return *tensor;
  throw DataError(fmt::format("{}: has no tensor '{}' among its {}; it belongs to another model configuration or version", path_, name,
                              content_.tensors.size()));
}

}  // namespace starling
