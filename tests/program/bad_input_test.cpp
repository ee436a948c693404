// Bad input to the whole program: each must end with a clear message and exit status 2 or 3, and must leave earlier checkpoints intact. The
// readers' own fuzz tests are in tests/data; these check that nothing is lost on the way to the user.
#include <gtest/gtest.h>
#include <zlib.h>

#include <filesystem>
#include <fstream>

#include "base/text_files.h"
#include "storage/checkpoint.h"
#include "tests/program/called.h"

namespace starling {
namespace {

namespace fs = std::filesystem;

class BadInputTest : public CalledTest {
 protected:
  BadInputTest() { write("good.a", seeing(200, true)), write("good.b", seeing(200, false)); }
  std::string train(const std::string& source, const std::string& target, const std::string& output, int steps = 4) const {
    return fmt::format(
        "train --data.source {} --data.target {} --train.output {} --vocab.size 60 --model.preset transformer-tiny --model.width 16 "
        "--model.heads 2 --model.feed-forward 16 --train.max-steps {} --checkpoint.every 2 --train.batch-tokens 200 --train.threads 1 ",
        source, target, output, steps);
  }
  static void expect_refused(const ShellOutcome& o, const std::string& what, const std::string& mentions) {
    EXPECT_TRUE(o.status == 2 || o.status == 3) << what << ": status " << o.status << "\n" << o.text;
    EXPECT_NE(o.text.find(mentions), std::string::npos) << what << " should mention '" << mentions << "':\n" << o.text;
  }
};

TEST_F(BadInputTest, BrokenTrainingTextIsRefusedWithFileAndLine) {
  const std::string good = read_text_file(path("good.a"));
  struct Case {
    const char* name;
    std::string content, mentions;
  };
  std::string zipped(compressBound(good.size()) + 64, '\0');
  {
    gzFile f = gzopen(path("zip.gz").c_str(), "wb");
    gzwrite(f, good.data(), static_cast<unsigned>(good.size()));
    gzclose(f);
    zipped = read_text_file(path("zip.gz"));
  }
  std::string nul = good, surrogate = good;
  nul[20] = '\0';
  surrogate.insert(good.find('\n') + 1, "\xED\xA0\x80");
  const std::vector<Case> cases{{"nul", nul, ":"},
                                {"surrogate", surrogate, ":2"},
                                {"truncated", zipped.substr(0, zipped.size() / 2), "truncated"},
                                {"short", good.substr(0, good.size() / 2), "lines"},
                                {"empty", "", "empty"},
                                {"huge-line", std::string(20 << 20, 'x') + "\n" + good, ":1"}};
  for (const Case& c : cases) {
    write(c.name, c.content);
    expect_refused(call(train(c.name, "good.b", "run")), c.name, c.name);
  }
  expect_refused(call(train("missing", "good.b", "run")), "missing", "missing");
  expect_refused(call(train(directory_, "good.b", "run")), "directory", directory_);
}

TEST_F(BadInputTest, WindowsLineEndsAndLongLinesAreText) {
  std::string crlf, target;
  for (int i = 0; i < 100; ++i) crlf += "see the ab now\r\n", target += "siehe das ba jetzt\r\n";
  crlf += std::string(1 << 20, 'x') + "\r\n", target += "lang\r\n";
  write("crlf.a", crlf), write("crlf.b", target);
  const ShellOutcome o = call(train("crlf.a", "crlf.b", "run-crlf"));
  EXPECT_EQ(o.status, 0) << o.text;
}

TEST_F(BadInputTest, UnusableDirectoriesAndFullDisksLoseNothing) {
  expect_refused(call(train("good.a", "good.b", "/dev/null/run")), "output below a file", "/dev/null");
  ASSERT_EQ(call(train("good.a", "good.b", "run")).status, 0);
  const auto files = real_file_system();
  ASSERT_EQ(latest_checkpoint(*files, path("run"))->step, 4);
  const ShellOutcome full =
      run_shell("cd '" + directory_ + "' && ulimit -f 39 && '" STARLING_BINARY "' " + train("good.a", "good.b", "run", 8));
  EXPECT_EQ(full.status, 3) << full.text;
  EXPECT_EQ(latest_checkpoint(*files, path("run"))->step, 4);
  EXPECT_EQ(call(train("good.a", "good.b", "run", 8)).status, 0);
  EXPECT_EQ(latest_checkpoint(*files, path("run"))->step, 8);

  expect_refused(call("translate --model run --input good.a --output /dev/full"), "full output", "/dev/full");
  expect_refused(call("translate --model good.a"), "model that is a file", "good.a");
  expect_refused(call("translate --model nowhere"), "missing model", "nowhere");
}

TEST_F(BadInputTest, DamagedModelsAreRefused) {
  ASSERT_EQ(call(train("good.a", "good.b", "run")).status, 0);
  const std::string model = path("run/checkpoints/step-00000004");
  for (const char* file : {"model.safetensors", "config.yml", "decode.yml", "vocab.spm"}) {
    const std::string whole = read_text_file(model + "/" + file);
    ASSERT_FALSE(whole.empty()) << file;
    for (size_t keep : {size_t{0}, whole.size() / 3}) {
      std::ofstream(model + "/" + file, std::ios::binary) << whole.substr(0, keep);
      const ShellOutcome o = call("translate --model " + model + " --input good.a --output /dev/null");
      EXPECT_TRUE(o.status == 2 || o.status == 3) << file << " cut to " << keep << ": status " << o.status << "\n" << o.text;
    }
    std::ofstream(model + "/" + file, std::ios::binary) << whole;
  }
  EXPECT_EQ(call("translate --model " + model + " --input good.a --output /dev/null").status, 0);
}

TEST_F(BadInputTest, OneEndlessLineIsCutOrLeftOutWhereverTextIsRead) {
  ASSERT_EQ(call(train("good.a", "good.b", "run")).status, 0);
  write("long", std::string(1 << 20, 'z') + "\n");
  const ShellOutcome score = call("score --model run --source long --target long");
  EXPECT_EQ(score.status, 0) << score.text;
  EXPECT_NE(score.text.find("long: 1 pair with more than"), std::string::npos) << score.text;
  EXPECT_EQ(call("translate --model run --input long --output out").status, 0);
  const ShellOutcome o = call(train("good.a", "good.b", "run-long") +
                              "--valid.source long --valid.target long --valid.every 2 --valid.max-length-factor 0.01");
  EXPECT_EQ(o.status, 0) << o.text;
}

TEST_F(BadInputTest, SizesOutOfRangeAreRefused) {
  for (const char* setting :
       {"--train.batch-tokens=-1", "--model.width=0", "--model.heads=3", "--vocab.size=-5", "--train.learning-rate=nan",
        "--model.encoder-layers=99999999999999999999", "--train.max-steps=-1", "--model.dropout=1.5"}) {
    const std::string key(setting + 2, std::string(setting).find('=') - 2);
    expect_refused(call(train("good.a", "good.b", "run-sizes") + setting), setting, key.substr(key.find('.') + 1));
  }
}

}  // namespace
}  // namespace starling
