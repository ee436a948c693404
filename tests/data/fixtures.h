// What the tests of data share: a directory that vanishes, archives made in memory, seeded nonsense sentences, and stores of them.
#pragma once

#include <stdlib.h>
#include <zlib.h>
#include <zstd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/random.h"
#include "data/token_store.h"
#include "text/vocabulary.h"

namespace starling::test {

class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    std::string pattern = (std::filesystem::temp_directory_path() / "starling-data-XXXXXX").string();
    CHECK(mkdtemp(pattern.data()) != nullptr, "{}", pattern);
    path_ = pattern;
  }
  ~TemporaryDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  std::string path(const std::string& name) const { return path_ + "/" + name; }
  std::string write(const std::string& name, std::string_view content) const {
    std::filesystem::remove(path(name));  // writing over a file makes some file systems wait for the disk
    std::ofstream(path(name), std::ios::binary) << content;
    return path(name);
  }

 private:
  std::string path_;
};

inline std::string read_all(const std::string& path) {
  std::ostringstream out;
  out << std::ifstream(path, std::ios::binary).rdbuf();
  return std::move(out).str();
}

inline std::string gzip(std::string_view text) {
  z_stream stream{};
  CHECK(deflateInit2(&stream, 1, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK, "zlib");
  std::string out(deflateBound(&stream, text.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  CHECK(deflate(&stream, Z_FINISH) == Z_STREAM_END, "zlib");
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

inline std::string zstandard(std::string_view text) {
  std::string out(ZSTD_compressBound(text.size()), '\0');
  const size_t size = ZSTD_compress(out.data(), out.size(), text.data(), text.size(), 1);
  CHECK(!ZSTD_isError(size), "libzstd");
  out.resize(size);
  return out;
}

// A sentence of 1 to `longest` made-up words; few enough distinct ones that a vocabulary finds pieces.
inline std::string sentence(Random& random, int64_t longest = 12) {
  static const char* const syllables[] = {"ka", "lo", "mi", "tür", "ße", "ran", "o", "stel", "ön", "qui", "ba", "e"};
  std::string text;
  for (int64_t words = 1 + static_cast<int64_t>(random.below(static_cast<uint64_t>(longest))); words > 0; --words) {
    for (uint64_t parts = 1 + random.below(3); parts > 0; --parts) text += syllables[random.below(std::size(syllables))];
    if (words > 1) text += ' ';
  }
  return text;
}

inline std::string sentences(uint64_t seed, int64_t count) {
  Random random(seed, 0);
  std::string text;
  for (int64_t i = 0; i < count; ++i) text += sentence(random) + "\n";
  return text;
}

// A vocabulary of `size` pieces trained on such sentences.
inline Vocabulary small_vocabulary(const TemporaryDirectory& directory, int64_t size = 60) {
  Random random(99, 0);
  int64_t left = 300;
  std::string line;
  const auto lines = [&](std::string_view& view) {
    line = sentence(random);
    view = line;
    return left-- > 0;
  };
  VocabularyOptions options;
  options.size = size;
  options.threads = 1;
  train_vocabulary(lines, options, directory.path("vocabulary.model"));
  return Vocabulary::load(directory.path("vocabulary.model"));
}

// A store of one corpus for each number of pairs, without any text. Pair i of the store says its number: source {i / 1000 + 1,
// i % 1000 + 1, ..., eos}; lengths are seeded.
inline TokenStore numbered_store(const TemporaryDirectory& directory, const std::vector<int64_t>& corpora, int64_t longest = 40,
                                 int64_t vocabulary = 2000) {
  const auto files = real_file_system();
  Random random(5, 5);
  int32_t number = 0;
  {
    TokenStoreWriter writer(*files, directory.path("store"), 7, vocabulary, vocabulary);
    for (const int64_t pairs : corpora) {
      for (int64_t i = 0; i < pairs; ++i, ++number) {
        std::vector<int32_t> source{number / 1000 + 3, number % 1000 + 3}, target;
        source.resize(2 + random.below(static_cast<uint64_t>(longest)), 3);
        target.resize(1 + random.below(static_cast<uint64_t>(longest)), number % 100 + 3);
        source.push_back(2);
        target.push_back(2);
        writer.append(source, target);
      }
      writer.end_corpus({pairs, pairs, 0, 0, 0});
    }
    writer.finish();
  }
  return TokenStore::open(*files, directory.path("store"));
}

// A store of sentences with the vocabulary that they are cut by.
struct TextStore {
  TextStore(const TemporaryDirectory& directory, int64_t pairs)
      : vocabulary(small_vocabulary(directory)), store(build(directory, pairs, vocabulary)) {}

  static TokenStore build(const TemporaryDirectory& directory, int64_t pairs, const Vocabulary& vocabulary) {
    DataOptions data;
    data.train.push_back({directory.write("source", sentences(1, pairs)), directory.write("target", sentences(2, pairs)), ""});
    return TokenStore::open_or_build(*real_file_system(), directory.path("text-store"), data, vocabulary, vocabulary, {});
  }

  Vocabulary vocabulary;
  TokenStore store;
};

// The message of the error of type E that `action` must throw.
template <class E, class Action>
std::string message_of(const Action& action) {
  try {
    action();
  } catch (const E& error) {
    return error.what();
  } catch (const std::exception& error) {
    return std::string("another error: ") + error.what();
  }
  return "no error";
}

}  // namespace starling::test
