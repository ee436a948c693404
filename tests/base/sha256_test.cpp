// SHA-256 against the published vectors of FIPS 180-4 (NIST's examples), both code paths against each other, and pieces against the whole.
#include "base/sha256.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/random.h"
#include "tests/files/memory_files.h"

namespace starling {
namespace {

std::string hash(std::string_view text, bool hardware) {
  Sha256 sha(hardware);
  sha.update(std::as_bytes(std::span(text)));
  return to_hex(sha.digest());
}

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

TEST(Sha256, PublishedVectorsOnBothPaths) {
  for (const auto& [text, digest] : vectors()) {
    EXPECT_EQ(hash(text, false), digest) << "portable, length " << text.size();
    EXPECT_EQ(hash(text, true), digest) << "hardware, length " << text.size();
    EXPECT_EQ(sha256_hex(text), digest);
  }
}

TEST(Sha256, EveryLengthAroundTheBlockEdgesAgrees) {
  std::string text;
  for (int length = 0; length < 300; ++length) {
    EXPECT_EQ(hash(text, false), hash(text, true)) << length;
    text += static_cast<char>(length * 7 + 3);
  }
}

TEST(Sha256, PiecesEqualTheWhole) {
  Random random(1, 0);
  std::string text(100000, ' ');
  for (char& c : text) c = static_cast<char>(random.below(256));
  for (int trial = 0; trial < 50; ++trial) {
    Sha256 sha;
    for (size_t at = 0; at < text.size();) {
      const size_t count = std::min<size_t>(random.below(trial < 25 ? 200 : 5000), text.size() - at);
      sha.update(std::as_bytes(std::span(text).subspan(at, count)));
      at += count;
    }
    EXPECT_EQ(to_hex(sha.digest()), sha256_hex(text));
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
