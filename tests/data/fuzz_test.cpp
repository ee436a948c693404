// Thousands of seeded mutations of every kind of file that this library reads: only Starling's own errors may come out. Run it with
// -DSTARLING_SANITIZE=address,undefined to find the stray reads that stay silent otherwise. A failure prints its round: the seed.
#include <gtest/gtest.h>

#include <functional>
#include <span>

#include "base/hash64.h"
#include "data/batches.h"
#include "tests/data/fixtures.h"
#include "tests/files/memory_files.h"
#include "text/vocabulary_format.h"

namespace starling {
namespace {

using test::TemporaryDirectory;

// Inserts, removes, flips and repeats; mostly one change, sometimes several.
std::string mutate(std::string bytes, Random& random) {
  static const std::string_view bad[] = {std::string_view("\0", 1),
                                         "\r\n",
                                         "\r",
                                         "\n",
                                         "\xed\xa0\x80",
                                         "\xff",
                                         "\xc3",
                                         "\xf4\x90\x80\x80",
                                         "\xef\xbb\xbf",
                                         "\t",
                                         "\t\t",
                                         "\x1f\x8b",
                                         "\x28\xb5\x2f\xfd",
                                         "\xe2\x96\x81",
                                         "\xe2\x96\x85",
                                         "\xff\xfe"};
  for (uint64_t changes = random.below(4) == 0 ? 1 + random.below(30) : 1; changes > 0; --changes) {
    const size_t at = bytes.empty() ? 0 : random.below(bytes.size());
    switch (random.below(8)) {
      case 0:
        bytes.resize(at);
        break;
      case 1:
        bytes.insert(at, bad[random.below(std::size(bad))]);
        break;
      case 2:
        bytes.erase(at, 1 + random.below(40));
        break;
      case 3:
        bytes.insert(at, bytes.substr(at / 2, random.below(100)));
        break;
      case 4:
        bytes.insert(at, random.below(50) == 0 ? size_t{1} << 20 : size_t{10}, "x\0 \n"[random.below(4)]);
        break;
      default:
        if (!bytes.empty()) bytes[at] = static_cast<char>(bytes[at] ^ (1 << random.below(8)));
    }
  }
  return random.below(200) == 0 ? std::string() : bytes;
}

struct Tally {
  int passed = 0, refused = 0;
};

// Runs `use` on `rounds` mutations; errors that the user can mend are expected, all others are failures (defects are InternalError).
Tally fuzz(int rounds, uint64_t seed, const std::function<void(Random&)>& use) {
  Tally tally;
  for (int round = 0; round < rounds; ++round) {
    Random random(seed, static_cast<uint64_t>(round));
    try {
      use(random);
      ++tally.passed;
    } catch (const InternalError& error) {
      ADD_FAILURE() << "round " << round << ": " << error.what();
    } catch (const Error& error) {
      EXPECT_GT(std::string(error.what()).size(), 20u) << "round " << round;
      ++tally.refused;
    } catch (const std::exception& error) {
      ADD_FAILURE() << "round " << round << ": not an error of ours: " << error.what();
    }
  }
  EXPECT_GT(tally.refused, 0);
  return tally;
}

std::string archived(const std::string& text, uint64_t format) {
  return format == 0 ? text : format == 1 ? test::gzip(text) : test::zstandard(text);
}

TEST(Fuzz, TextFiles) {
  const TemporaryDirectory directory;
  const std::string text = test::sentences(1, 60);
  const char* const names[] = {"plain", "a.gz", "a.zst"};
  const Tally tally = fuzz(6000, 1, [&](Random& random) {
    const uint64_t format = random.below(3);
    const bool outside = random.below(2) == 0;  // mutate the archive, or the text inside
    const std::string content = outside ? mutate(archived(text, format), random) : archived(mutate(text, random), format);
    LineReader reader(directory.write(names[random.below(4) == 0 ? 0 : format], content));
    std::string_view line;
    while (reader.next(line)) EXPECT_EQ(line.find_first_of(std::string_view("\n\0", 2)), std::string_view::npos);
  });
  EXPECT_GT(tally.passed, 300);
}

TEST(Fuzz, CorporaAndTheirStores) {
  const TemporaryDirectory directory;
  const Vocabulary vocabulary = test::small_vocabulary(directory);
  std::string tsv;
  Random words(3, 3);
  for (int i = 0; i < 30; ++i) tsv += test::sentence(words) + "\t" + test::sentence(words) + "\n";
  const std::string source = test::sentences(1, 30), target = test::sentences(2, 30);
  const Tally tally = fuzz(1500, 2, [&](Random& random) {
    DataOptions options;
    if (random.below(2) == 0) {
      options.train = {{"", "", directory.write("x.tsv", mutate(tsv, random))}};
    } else {
      options.train = {
          {directory.write("s", mutate(source, random)), directory.write("t", random.below(2) ? target : mutate(target, random)), ""}};
    }
    MemoryFileSystem disk;  // syncing a real one takes milliseconds
    const TokenStore store = TokenStore::open_or_build(disk, "/run", options, vocabulary, vocabulary, {});
    BatchStream stream(store, {.batch_tokens = 100});
    while (stream.position().epoch == 0) stream.next();
  });
  EXPECT_GT(tally.passed, 100);
}

// Half of the damaged files get a right checksum again: then the checks of what they say are on their own.
TEST(Fuzz, TokenStores) {
  const TemporaryDirectory directory;
  test::numbered_store(directory, {30, 20});
  const auto files = real_file_system();
  const std::vector<std::string> names = files->list(directory.path("store"));
  ASSERT_EQ(names.size(), 3u);
  std::vector<std::string> good;
  for (const std::string& name : names) good.push_back(test::read_all(directory.path("store/" + name)));
  const auto sign = [](std::string bytes, size_t behind_the_checksum) {
    if (bytes.size() < 8 + behind_the_checksum) return bytes;
    const size_t at = bytes.size() - 8 - behind_the_checksum;
    const uint64_t sum = hash64(std::as_bytes(std::span(bytes)).first(at));
    return bytes.replace(at, 8, reinterpret_cast<const char*>(&sum), 8);
  };
  const Tally tally = fuzz(3000, 3, [&](Random& random) {
    for (size_t i = 0; i < names.size(); ++i) {
      std::string bytes = random.below(2) ? mutate(good[i], random) : good[i];
      if (random.below(2)) bytes = sign(bytes, names[i] == "train.index" ? 0 : 8);
      directory.write("store/" + names[i], bytes);
    }
    const TokenStore store = TokenStore::open(*files, directory.path("store"));
    BatchStream stream(store, {.batch_tokens = 100});
    while (stream.position().epoch == 0) {
      for (const Batch& batch = stream.next(); const int32_t token : batch.target.tokens) EXPECT_LT(token, 2000);
    }
  });
  EXPECT_GT(tally.passed, 100);
}

// With our checksum nearly every change is noticed; without it SentencePiece itself sees the damage, and must not stumble.
TEST(Fuzz, Vocabularies) {
  const TemporaryDirectory directory;
  const std::string own = test::small_vocabulary(directory).bytes();
  const std::string foreign = own.substr(0, own.size() - 12);
  const std::string end_of_pieces = "\x12";  // the tag of the trainer's settings, behind the pieces
  const Tally tally = fuzz(800, 4, [&](Random& random) {
    std::string bytes = random.below(4) == 0 ? mutate(own, random) : foreign;
    if (bytes == foreign) {  // half of the changes to the pieces, which are the small part of the file
      const size_t pieces = foreign.find(end_of_pieces, 200);
      bytes = random.below(2) ? mutate(foreign, random) : mutate(foreign.substr(0, pieces), random) + foreign.substr(pieces);
    }
    const Vocabulary vocabulary = Vocabulary::from_bytes(bytes);
    vocabulary.decode(vocabulary.encode("ka lo mi türße ① ½ の Ａ"));
  });
  EXPECT_GT(tally.passed, 50);
}

TEST(Fuzz, VocabulariesTrainedOnNonsense) {
  const TemporaryDirectory directory;
  const std::string text = test::sentences(1, 40);
  const Tally tally = fuzz(60, 5, [&](Random& random) {
    const std::string path = directory.write("text", mutate(text, random));
    LineReader reader(path);
    VocabularyOptions options;
    options.type = random.below(2) ? "bpe" : "unigram";
    options.size = 20 + static_cast<int64_t>(random.below(60));
    options.threads = 1;
    train_vocabulary([&](std::string_view& line) { return reader.next(line); }, options, directory.path("v.model"));
    Vocabulary::load(directory.path("v.model")).encode("ka lo");
  });
  EXPECT_GT(tally.passed, 5);
}

}  // namespace
}  // namespace starling
