// SHA-256 against the published vectors of FIPS 180-4 (NIST's examples).
#include "base/sha256.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/files/memory_files.h"

namespace starling {
namespace {

struct Vector {
  std::string text, digest;
};

const std::vector<Vector>& vectors() {
  static const std::vector<Vector> list = {
      {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
      {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
      {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
      {"abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu",
       "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1"},
      {std::string(1000000, 'a'), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"}};
  return list;
}

TEST(Sha256, PublishedVectors) {
  for (const auto& [text, digest] : vectors()) {
    EXPECT_EQ(sha256_hex(text), digest) << "length " << text.size();
    Sha256 pieces;
    const auto bytes = std::as_bytes(std::span(text));
    pieces.update(bytes.first(text.size() / 2));
    pieces.update(bytes.subspan(text.size() / 2));
    EXPECT_EQ(to_hex(pieces.digest()), digest) << "in pieces, length " << text.size();
  }
}

TEST(Sha256, HashesAFile) {
  MemoryFileSystem files;
  files.write_file("a", "abc");
  EXPECT_EQ(sha256_file(files, "a"), vectors()[1].digest);
  EXPECT_THROW(sha256_file(files, "b"), IoError);
}

}  // namespace
}  // namespace starling
