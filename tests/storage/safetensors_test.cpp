// The safetensors layout: what we write is what others read (a file made by hand), and no bytes whatever make the reader misbehave.
#include "storage/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "base/random.h"
#include "tests/files/memory_files.h"

namespace starling {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class TextSink final : public ByteSink {
 public:
  using ByteSink::write;
  void write(std::span<const std::byte> bytes) override { text.append(reinterpret_cast<const char*>(bytes.data()), bytes.size()); }
  std::string text;
};

template <class T>
std::span<const std::byte> bytes_of(const std::vector<T>& values) {
  return std::as_bytes(std::span(values));
}
std::string_view text_of(std::span<const std::byte> bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

std::string file_with(const std::string& header, const std::string& data = "") {
  std::string text;
  for (int i = 0; i < 8; ++i) text += static_cast<char>(header.size() >> (8 * i) & 255);
  return text + header + data;
}

std::string written(const std::vector<NamedBytes>& tensors, const SafetensorsMetadata& metadata = {}) {
  TextSink sink;
  write_safetensors(sink, tensors, metadata);
  EXPECT_EQ(sink.text.size(), safetensors_size(tensors, metadata));
  return sink.text;
}

SafetensorsContent parse(const std::string& text) { return parse_safetensors(std::as_bytes(std::span(text)), "f"); }

std::string error_of(const std::string& text) {
  try {
    parse(text);
  } catch (const DataError& error) {
    return error.what();
  }
  return "no error";
}

std::string entry(const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return R"({"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}";
}

const std::vector<float> floats = {1.5f, -2.0f, 0.0f, 3e38f, 1e-40f, -0.0f};
const std::vector<uint8_t> octets = {1, 2, 255};
const std::vector<int64_t> longs = {INT64_MIN, INT64_MAX};

std::vector<NamedBytes> some_tensors() {
  return {{"octets", "U8", {3}, bytes_of(octets)},
          {"weights/encoder \"1\" é", "F32", {2, 3}, bytes_of(floats)},
          {"longs", "I64", {2, 1}, bytes_of(longs)},
          {"empty", "BF16", {0, 7}, {}},
          {"scalar", "F32", {}, bytes_of(floats).first(4)}};
}

TEST(Safetensors, RoundTripThroughAFile) {
  MemoryFileSystem files;
  files.write_file("m", written(some_tensors(), {{"format", "starling"}, {"note", "line\nbreak"}}));
  const SafetensorsFile file(files, "m");
  EXPECT_EQ(file.tensors().size(), 5u);
  EXPECT_EQ(file.metadata().at("note"), "line\nbreak");
  for (const NamedBytes& tensor : some_tensors()) {
    const NamedBytes& read = file.at(tensor.name);
    EXPECT_EQ(read.dtype, tensor.dtype);
    EXPECT_EQ(read.shape, tensor.shape);
    EXPECT_EQ(text_of(read.data), text_of(tensor.data));
  }
  EXPECT_EQ(file.find("other"), nullptr);
  EXPECT_THROW(file.at("other"), DataError);
}

TEST(Safetensors, DataIsAlignedAndWiderTypesComeFirst) {
  const std::string text = written(some_tensors());
  std::vector<std::string> names;
  for (const NamedBytes& tensor : parse(text).tensors) {
    names.push_back(tensor.name);
    EXPECT_EQ((reinterpret_cast<const char*>(tensor.data.data()) - text.data()) % dtype_bytes(tensor.dtype), 0) << tensor.name;
  }
  EXPECT_THAT(names, ElementsAre("longs", "weights/encoder \"1\" é", "scalar", "empty", "octets"));
  EXPECT_EQ((parse(text).tensors[0].data.data() - reinterpret_cast<const std::byte*>(text.data())) % 64, 0);
}

TEST(Safetensors, ReadsAFileMadeByHand) {
  const std::string header =
      R"({"b":{"shape":[2],"dtype":"F16","data_offsets":[4,8]},"a":{"dtype":"I32","shape":[],"data_offsets":[0,4]}} )";
  const std::string text = file_with(header, std::string("\x2a\0\0\0abcd", 8));
  const auto content = parse(text);
  ASSERT_EQ(content.tensors.size(), 2u);
  EXPECT_EQ(content.tensors[0].name, "a");
  EXPECT_EQ(text_of(content.tensors[0].data), std::string_view("\x2a\0\0\0", 4));
  EXPECT_EQ(content.tensors[1].name, "b");
  EXPECT_THAT(content.tensors[1].shape, ElementsAre(2));
  EXPECT_EQ(text_of(content.tensors[1].data), "abcd");
  EXPECT_TRUE(parse(file_with("{}")).tensors.empty());
}

TEST(Safetensors, RefusesUnsoundFiles) {
  const std::string t = R"({"t":)";
  EXPECT_THAT(error_of(""), HasSubstr("f: not a valid safetensors file: it has 0 bytes"));
  EXPECT_THAT(error_of(std::string(8, '\xff')), HasSubstr("above the limit"));
  EXPECT_THAT(error_of(file_with("{}").substr(0, 9)), HasSubstr("only 1 bytes follow"));
  EXPECT_THAT(error_of(file_with("[]")), HasSubstr("does not begin with '{'"));
  EXPECT_THAT(error_of(file_with(" {}")), HasSubstr("does not begin with '{'"));
  EXPECT_THAT(error_of(file_with("{nonsense")), HasSubstr("f: is not JSON"));
  EXPECT_THAT(error_of(file_with("{\"\xff\":1}")), HasSubstr("f: is not JSON"));
  EXPECT_THAT(error_of(file_with("{\"a\":" + std::string(100000, '['))), HasSubstr("nested deeper"));
  EXPECT_THAT(error_of(file_with(t + entry("U8", "[1]", "[0,1]") + R"(,"t":)" + entry("U8", "[1]", "[1,2]") + "}", "xx")),
              HasSubstr("occurs twice"));
  EXPECT_THAT(error_of(file_with(t + "3}")), HasSubstr("exactly dtype"));
  EXPECT_THAT(error_of(file_with(t + R"({"dtype":"U8","shape":[1]}})", "x")), HasSubstr("exactly dtype"));
  EXPECT_THAT(error_of(file_with(t + entry("F8", "[1]", "[0,1]") + "}", "x")), HasSubstr("the dtype 'F8'"));
  EXPECT_THAT(error_of(file_with(t + entry("U8", "[-1]", "[0,1]") + "}", "x")), HasSubstr("holds -1"));
  EXPECT_THAT(error_of(file_with(t + entry("U8", "[1.0]", "[0,1]") + "}", "x")), HasSubstr("holds 1.0"));
  EXPECT_THAT(error_of(file_with(t + entry("U8", "[18446744073709551615]", "[0,1]") + "}", "x")), HasSubstr("not a size"));
  EXPECT_THAT(error_of(file_with(t + entry("U8", "{}", "[0,1]") + "}", "x")), HasSubstr("not a list"));
  EXPECT_THAT(error_of(file_with(t + entry("U8", "[1]", "[0,2]") + "}", "x")), HasSubstr("of 1 data bytes"));
  EXPECT_THAT(error_of(file_with(t + entry("U8", "[1]", "[1,0]") + "}", "x")), HasSubstr("lies at [1, 0]"));
  EXPECT_THAT(error_of(file_with(t + entry("U8", "[1]", "[0]") + "}", "x")), HasSubstr("lies at [0]"));
  EXPECT_THAT(error_of(file_with(t + entry("F32", "[2]", "[0,4]") + "}", "xxxx")), HasSubstr("not those of shape [2] in F32"));
  EXPECT_THAT(error_of(file_with(t + entry("F32", "[4611686018427387904,4]", "[0,0]") + "}")), HasSubstr("takes 0 bytes"));  // overflows
  EXPECT_THAT(error_of(file_with(t + entry("U8", "[1]", "[0,1]") + "}", "xy")), HasSubstr("1 bytes at the end"));
  EXPECT_THAT(error_of(file_with(t + entry("U8", "[1]", "[1,2]") + "}", "xy")), HasSubstr("unused bytes before"));
  EXPECT_THAT(error_of(file_with(t + entry("U8", "[2]", "[0,2]") + R"(,"u":)" + entry("U8", "[2]", "[1,3]") + "}", "xyz")),
              HasSubstr("overlaps"));
  EXPECT_THAT(error_of(file_with(R"({"__metadata__":[]})")), HasSubstr("__metadata__"));
  EXPECT_THAT(error_of(file_with(R"({"__metadata__":{"a":1}})")), HasSubstr("not a string"));
}

// In time that grows with the header: searching all other entries for each of these would run into the time limit of the test by far.
// Many more without elements are refused: what the header takes is bounded by the bytes of the file.
TEST(Safetensors, AHeaderOfVeryManyTensorsIsWrittenAndRead) {
  constexpr int count = 50000;
  std::vector<NamedBytes> tensors;
  for (int i = 0; i < count; ++i) tensors.push_back({"t" + std::to_string(i), "F32", {0, i}, {}});
  const std::string text = written(tensors, {{"k", "v"}});
  const SafetensorsContent content = parse(text);
  ASSERT_EQ(content.tensors.size(), static_cast<size_t>(count));
  EXPECT_EQ(content.metadata.at("k"), "v");
}

TEST(Safetensors, WriterRefusesNonsense) {
  EXPECT_THROW(written({{"a", "F32", {2}, bytes_of(octets)}}), InternalError);
  EXPECT_THROW(written({{"a", "F31", {3}, bytes_of(octets)}}), InternalError);
  EXPECT_THROW(written({{"a", "U8", {3}, bytes_of(octets)}, {"a", "U8", {3}, bytes_of(octets)}}), InternalError);
  EXPECT_THROW(written({{"\xff", "U8", {3}, bytes_of(octets)}}), InternalError);
  EXPECT_THROW(written({{"__metadata__", "U8", {3}, bytes_of(octets)}}), InternalError);
}

// Changes, inserts, removes or repeats bytes, mostly in the header, where they hurt.
std::string mutate(std::string text, Random& random) {
  static const std::string digits = "0123456789-{}[],:\"e.";
  for (uint64_t count = 1 + random.below(4); count > 0 && !text.empty(); --count) {
    const size_t at = random.below(random.below(4) == 0 ? text.size() : std::min<size_t>(text.size(), 340));
    switch (random.below(6)) {
      case 0:
        text[at] = static_cast<char>(random.below(256));
        break;
      case 1:
        text[at] = static_cast<char>(text[at] ^ (1 << random.below(8)));
        break;
      case 2:
        text[at] = digits[random.below(digits.size())];
        break;
      case 3:
        text.insert(at, 1, digits[random.below(digits.size())]);
        break;
      case 4:
        text.erase(at, 1 + random.below(8));
        break;
      default:
        text.resize(at);
        break;
    }
  }
  // Half of the time repair the length, so that the mutation reaches the JSON.
  const size_t brace = text.rfind("}}");
  if (random.below(2) == 0 && text.size() > 8 && brace != std::string::npos && brace > 8) {
    const uint64_t length = brace + 2 - 8;
    std::memcpy(text.data(), &length, 8);
  }
  return text;
}

TEST(Safetensors, TenThousandMutationsNeverMisbehave) {
  const std::string sound = written(some_tensors(), {{"format", "starling"}});
  Random random(7, 0);
  int refused = 0, accepted = 0;
  for (int trial = 0; trial < 10000; ++trial) {
    const std::string text = mutate(sound, random);
    const std::vector<char> exact(text.begin(), text.end());  // no slack behind it: a read too far is seen by the address sanitizer
    try {
      unsigned sum = 0;
      for (const NamedBytes& tensor : parse_safetensors(std::as_bytes(std::span(exact)), "f").tensors) {
        for (const std::byte byte : tensor.data) sum += std::to_integer<unsigned>(byte);
      }
      accepted += sum < ~0u ? 1 : 0;
    } catch (const DataError& error) {
      ASSERT_TRUE(std::string_view(error.what()).starts_with("f: ")) << error.what();
      ++refused;
    }
  }
  EXPECT_GT(refused, 5000);
  EXPECT_GT(accepted, 100);
}

TEST(Safetensors, RandomBytesNeverMisbehave) {
  Random random(8, 0);
  for (int trial = 0; trial < 2000; ++trial) {
    std::string text(random.below(100), ' ');
    for (char& c : text) c = static_cast<char>(random.below(256));
    EXPECT_THROW(parse(text), DataError);
  }
}

}  // namespace
}  // namespace starling
