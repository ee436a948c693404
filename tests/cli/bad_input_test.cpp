// Bad input through the real program: each must end with a clear message and exit status 2 or 3, never a signal, and must leave
// earlier checkpoints intact. The readers' own fuzz tests are in tests/data; these check that nothing is lost on the way to the user.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "storage/checkpoint.h"

namespace starling {
namespace {

namespace fs = std::filesystem;

struct Refusal {
  int status = -1;  // exit status, or -signal
  std::string errors;
};

class BadInputTest : public testing::Test {
 protected:
  BadInputTest() : directory_(fs::temp_directory_path() / ("starling-bad-" + std::to_string(::getpid()))) {
    fs::create_directories(directory_);
    std::string source, target;
    for (int i = 0; i < 200; ++i) {
      const char a = static_cast<char>('a' + i % 26), b = static_cast<char>('a' + i * 7 % 26);
      source += std::string("see ") + a + b + " now\n", target += std::string("siehe ") + b + a + " jetzt\n";
    }
    write("good.a", source), write("good.b", target);
  }
  ~BadInputTest() override { fs::remove_all(directory_); }

  std::string path(const std::string& name) const { return (directory_ / name).string(); }
  void write(const std::string& name, const std::string& content) { std::ofstream(path(name), std::ios::binary) << content; }
  static std::string read(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  // file_limit: largest file the child may write, bytes; stands in for a full disk.
  Refusal run(const std::vector<std::string>& arguments, rlim_t file_limit = RLIM_INFINITY) {
    const pid_t child = fork();
    if (child == 0) {
      if (file_limit != RLIM_INFINITY) {
        const rlimit limit{file_limit, file_limit};
        setrlimit(RLIMIT_FSIZE, &limit);
        signal(SIGXFSZ, SIG_IGN);
      }
      std::freopen(path("stderr").c_str(), "wb", stderr);
      std::freopen("/dev/null", "wb", stdout);
      std::freopen("/dev/null", "rb", stdin);
      std::vector<char*> argv{const_cast<char*>(STARLING_BINARY)};
      for (const std::string& a : arguments) argv.push_back(const_cast<char*>(a.c_str()));
      argv.push_back(nullptr);
      execv(STARLING_BINARY, argv.data());
      _exit(127);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status), read(path("stderr"))};
  }

  std::vector<std::string> train(const std::string& source, const std::string& target, const std::string& output, int steps = 4) {
    return {"train",
            "--data.source",
            source,
            "--data.target",
            target,
            "--train.output",
            output,
            "--vocab.size",
            "60",
            "--model.preset",
            "transformer-tiny",
            "--model.width",
            "16",
            "--model.heads",
            "2",
            "--model.feed-forward",
            "16",
            "--train.max-steps",
            std::to_string(steps),
            "--checkpoint.every",
            "2",
            "--train.batch-tokens",
            "200",
            "--train.threads",
            "1"};
  }

  void expect_refused(const Refusal& o, const std::string& what, const std::string& mentions) {
    EXPECT_TRUE(o.status == 2 || o.status == 3) << what << ": status " << o.status << "\n" << o.errors;
    EXPECT_NE(o.errors.find(mentions), std::string::npos) << what << " should mention '" << mentions << "':\n" << o.errors;
  }

  fs::path directory_;
};

TEST_F(BadInputTest, BrokenTrainingTextIsRefusedWithFileAndLine) {
  const std::string good = read(path("good.a"));
  struct Case {
    const char* name;
    std::string content, mentions;
  };
  std::string zipped(compressBound(good.size()) + 64, '\0');
  {
    gzFile f = gzopen(path("zip.gz").c_str(), "wb");
    gzwrite(f, good.data(), static_cast<unsigned>(good.size()));
    gzclose(f);
    zipped = read(path("zip.gz"));
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
    expect_refused(run(train(path(c.name), path("good.b"), path("run"))), c.name, path(c.name));
  }
  expect_refused(run(train(path("missing"), path("good.b"), path("run"))), "missing", path("missing"));
  expect_refused(run(train(directory_.string(), path("good.b"), path("run"))), "directory", directory_.string());
}

TEST_F(BadInputTest, WindowsLineEndsAndLongLinesAreText) {
  std::string crlf, target;
  for (int i = 0; i < 100; ++i) crlf += "see the ab now\r\n", target += "siehe das ba jetzt\r\n";
  crlf += std::string(1 << 20, 'x') + "\r\n", target += "lang\r\n";
  write("crlf.a", crlf), write("crlf.b", target);
  const Refusal o = run(train(path("crlf.a"), path("crlf.b"), path("run-crlf")));
  EXPECT_EQ(o.status, 0) << o.errors;
}

TEST_F(BadInputTest, UnusableDirectoriesAndFullDisksLoseNothing) {
  expect_refused(run(train(path("good.a"), path("good.b"), "/dev/null/run")), "output below a file", "/dev/null");
  ASSERT_EQ(run(train(path("good.a"), path("good.b"), path("run"))).status, 0);
  const auto files = real_file_system();
  ASSERT_EQ(latest_checkpoint(*files, path("run"))->step, 4);
  const Refusal full = run(train(path("good.a"), path("good.b"), path("run"), 8), 20000);
  EXPECT_EQ(full.status, 3) << full.errors;
  EXPECT_EQ(latest_checkpoint(*files, path("run"))->step, 4);
  EXPECT_EQ(run(train(path("good.a"), path("good.b"), path("run"), 8)).status, 0);
  EXPECT_EQ(latest_checkpoint(*files, path("run"))->step, 8);

  expect_refused(run({"translate", "--model", path("run"), "--input", path("good.a"), "--output", "/dev/full"}), "full output",
                 "/dev/full");
  expect_refused(run({"translate", "--model", path("good.a")}), "model that is a file", path("good.a"));
  expect_refused(run({"translate", "--model", path("nowhere")}), "missing model", path("nowhere"));
}

TEST_F(BadInputTest, DamagedModelsAreRefused) {
  ASSERT_EQ(run(train(path("good.a"), path("good.b"), path("run"))).status, 0);
  const std::string model = path("run") + "/checkpoints/step-00000004";
  for (const char* file : {"model.safetensors", "config.yml", "decode.yml", "vocab.spm"}) {
    const std::string whole = read(model + "/" + file);
    ASSERT_FALSE(whole.empty()) << file;
    for (size_t keep : {size_t{0}, whole.size() / 3}) {
      std::ofstream(model + "/" + file, std::ios::binary) << whole.substr(0, keep);
      const Refusal o = run({"translate", "--model", model, "--input", path("good.a"), "--output", "/dev/null"});
      EXPECT_TRUE(o.status == 2 || o.status == 3) << file << " cut to " << keep << ": status " << o.status << "\n" << o.errors;
    }
    std::ofstream(model + "/" + file, std::ios::binary) << whole;
  }
  EXPECT_EQ(run({"translate", "--model", model, "--input", path("good.a"), "--output", "/dev/null"}).status, 0);
}

TEST_F(BadInputTest, OneEndlessLineIsCutOrLeftOutWhereverTextIsRead) {
  ASSERT_EQ(run(train(path("good.a"), path("good.b"), path("run"))).status, 0);
  write("long", std::string(1 << 20, 'z') + "\n");
  const Refusal score = run({"score", "--model", path("run"), "--source", path("long"), "--target", path("long")});
  EXPECT_EQ(score.status, 0) << score.errors;
  EXPECT_NE(score.errors.find(path("long") + ": 1 pair with more than"), std::string::npos) << score.errors;
  EXPECT_EQ(run({"translate", "--model", path("run"), "--input", path("long"), "--output", path("out")}).status, 0);
  std::vector<std::string> arguments = train(path("good.a"), path("good.b"), path("run-long"));
  for (const std::string& a :
       {std::string("--valid.source"), path("long"), std::string("--valid.target"), path("long"), std::string("--valid.every"),
        std::string("2"), std::string("--valid.max-length-factor"), std::string("0.01")})
    arguments.push_back(a);
  const Refusal o = run(arguments);
  EXPECT_EQ(o.status, 0) << o.errors;
}

TEST_F(BadInputTest, SizesOutOfRangeAreRefused) {
  for (const char* setting :
       {"--train.batch-tokens=-1", "--model.width=0", "--model.heads=3", "--vocab.size=-5", "--train.learning-rate=nan",
        "--model.encoder-layers=99999999999999999999", "--train.max-steps=-1", "--model.dropout=1.5"}) {
    std::vector<std::string> arguments = train(path("good.a"), path("good.b"), path("run-sizes"));
    arguments.push_back(setting);
    const std::string key(setting + 2, std::string(setting).find('=') - 2);
    expect_refused(run(arguments), setting, key.substr(key.find('.') + 1));
  }
}

}  // namespace
}  // namespace starling
