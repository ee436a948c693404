// `starling serve` as a process: where it listens, what it says, how signals end it.
#include "tests/cli/program.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <regex>
#include <sstream>
#include <thread>

#include "base/sha256.h"
#include "tests/serve/client.h"
#include "tests/serve/fixture_model.h"

namespace starling {
namespace {

using testing::HasSubstr;

class ServeProgram : public ProgramTest {
 protected:
  ~ServeProgram() override {
    if (process_ > 0) kill(process_, SIGKILL), waitpid(process_, nullptr, 0);
  }
  // A socket that gets what the server tells a service manager; the server is to be started while it exists.
  int service_manager() {
    const int manager = socket(AF_UNIX, SOCK_DGRAM, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path("manager").c_str());
    EXPECT_EQ(bind(manager, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    const timeval patience{30, 0};
    setsockopt(manager, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    return manager;
  }
  void start_under_manager(const std::string& arguments) {
    setenv("NOTIFY_SOCKET", path("manager").c_str(), 1);
    start(arguments);
    unsetenv("NOTIFY_SOCKET");
  }
  void start(const std::string& arguments) {
    process_ = fork();
    if (process_ == 0) {
      if (open_files_ > 0) {
        const rlimit files{open_files_, open_files_};
        setrlimit(RLIMIT_NOFILE, &files);
      }
      const std::string command = "cd '" + directory_ +
                                  "' && exec '" STARLING_BINARY "' serve --listen 127.0.0.1:0 --threads 1 --precision f32 " + arguments +
                                  " >out 2>err </dev/null";
      execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
      _exit(127);
    }
  }
  std::string text(const std::string& name) const {
    std::ifstream in(path(name));
    return {std::istreambuf_iterator<char>(in), {}};
  }
  // Waits until a file has these words.
  bool wait_for(const std::string& name, const std::string& words) {
    for (int i = 0; i < 30000; ++i, usleep(1000))
      if (text(name).find(words) != std::string::npos) return true;
    return false;
  }
  std::string url(const std::string& what) {
    const std::string mark = "listening at ";
    EXPECT_TRUE(wait_for("err", mark)) << text("err");
    const std::string all = text("err"), from = all.substr(all.find(mark) + mark.size());
    return from.substr(0, from.find('\n')) + what;
  }
  // Its exit status; -1: a signal.
  int wait() {
    int status = 0;
    waitpid(process_, &status, 0);
    process_ = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  pid_t process_ = 0;
  rlim_t open_files_ = 0;  // that it may have; 0: as many as this program
};

TEST_F(ServeProgram, ServesAndEndsInOrder) {
  start("--model en-de=" + kModel);
  const std::string translate = url("/translate");
  EXPECT_THAT(text("err"), HasSubstr("en to de: " + kModel + ", step 0, f32 on "));
  EXPECT_THAT(text("err"), testing::ContainsRegex("; 1 thread with 32 rows take [0-9]+ MiB at most\n"));
  EXPECT_EQ(ask_json(translate, {{"q", "a house"}, {"source", "en"}, {"target", "de"}}).status, 200);
  kill(process_, SIGTERM);
  EXPECT_EQ(wait(), 0) << text("err");
  EXPECT_THAT(text("err"), HasSubstr("stopped\n"));
  EXPECT_THAT(text("out"), HasSubstr("\"path\":\"/translate\",\"status\":200"));
}

TEST_F(ServeProgram, AnswersWhatIsUnderWayBeforeItEnds) {
  start("--cache-mib 0 --model en-de=" + kModel);
  const std::string where = url("");
  std::vector<std::string> lines(300, "a small house and a dog");
  ClientAnswer answer;
  std::thread client([&] { answer = ask_json(where + "/translate", {{"q", lines}, {"source", "en"}, {"target", "de"}}); });
  for (int i = 0; i < 20000 && ask(where + "/metrics").body.find("starling_queue_sentences 0\n") != std::string::npos; ++i) usleep(1000);
  kill(process_, SIGTERM);
  ASSERT_TRUE(wait_for("err", "stopping: "));
  client.join();
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.json()["translatedText"].size(), 300u);
  EXPECT_EQ(wait(), 0);
}

double seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

// Models whose reading takes minutes: a file of 200 GB, of which the disk has nothing, is compared with the manifest.
class SlowModel : public ServeProgram {
 protected:
  SlowModel() { std::filesystem::copy(kModel, path("model")); }
  void make_slow() {
    write("model/more", "");
    std::filesystem::resize_file(path("model/more"), uint64_t{200} << 30);
    nlohmann::json manifest = nlohmann::json::parse(text("model/manifest.json"));
    const nlohmann::json more{{"name", "more"}, {"size", uint64_t{200} << 30}, {"sha256", std::string(64, '0')}};
    manifest["files"].insert(manifest["files"].begin(), more);
    manifest.erase("digest");
    manifest["digest"] = sha256_hex(manifest.dump());
    write("model/manifest.json", manifest.dump());
  }
  // Until the server reads that file.
  bool wait_for_reading() const {
    for (int i = 0; i < 30000; ++i, usleep(1000)) {
      std::error_code gone;
      for (const auto& file : std::filesystem::directory_iterator("/proc/" + std::to_string(process_) + "/fd", gone))
        if (std::filesystem::read_symlink(file, gone).filename() == "more") return true;
    }
    return false;
  }
};

TEST_F(SlowModel, EndsWhileItLoads) {
  make_slow();
  start("--model en-de=model");
  ASSERT_TRUE(wait_for_reading()) << text("err");
  const double begin = seconds();
  kill(process_, SIGTERM);
  EXPECT_EQ(wait(), 0) << text("err");
  EXPECT_LT(seconds() - begin, 10);
  EXPECT_EQ(text("err"), "stopping: 0 requests in progress\nstopped while a model was being read\n");
}

TEST_F(SlowModel, EndsWhileItReloadsAndAnswersWhatIsUnderWay) {
  start("--cache-mib 0 --model en-de=model");
  const std::string where = url("");
  make_slow();
  std::vector<std::string> lines(300, "a small house and a dog");
  ClientAnswer answer;
  std::thread client([&] { answer = ask_json(where + "/translate", {{"q", lines}, {"source", "en"}, {"target", "de"}}); });
  for (int i = 0; i < 20000 && ask(where + "/metrics").body.find("starling_queue_sentences 0\n") != std::string::npos; ++i) usleep(1000);
  kill(process_, SIGHUP);
  EXPECT_TRUE(wait_for_reading());
  kill(process_, SIGTERM);
  client.join();
  EXPECT_EQ(answer.json()["translatedText"].size(), 300u);
  const double begin = seconds();
  EXPECT_EQ(wait(), 0) << text("err");
  EXPECT_LT(seconds() - begin, 10);
  EXPECT_THAT(text("err"), HasSubstr("stopping: 1 request in progress\n"));
  EXPECT_THAT(text("err"), HasSubstr("stopped while a model was being read\n"));
}

TEST_F(ServeProgram, TellsTheServiceManagerHowFarItIs) {
  const int manager = service_manager();
  const auto told = [&] {
    char block[200];
    const ssize_t size = recv(manager, block, sizeof block, 0);
    return std::string(block, static_cast<size_t>(std::max<ssize_t>(size, 0)));
  };
  start_under_manager("--model en-de=" + kModel);
  EXPECT_EQ(told(), "READY=1");
  EXPECT_EQ(ask(url("/ready")).status, 200);
  kill(process_, SIGHUP);
  EXPECT_THAT(told(), testing::MatchesRegex("RELOADING=1\nMONOTONIC_USEC=[0-9]+"));
  EXPECT_EQ(told(), "READY=1");
  EXPECT_TRUE(wait_for("err", "en to de: now " + kModel));  // which has a thread of its own
  kill(process_, SIGTERM);
  EXPECT_EQ(told(), "STOPPING=1");
  EXPECT_EQ(wait(), 0);
  close(manager);
}

TEST_F(ServeProgram, OutlivesWhoReadsItsLog) {
  ASSERT_EQ(mkfifo(path("log").c_str(), 0600), 0);
  const int reader = open(path("log").c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  start("--access-log log --model en-de=" + kModel);
  const std::string health = url("/health");
  EXPECT_EQ(ask(health).status, 200);
  close(reader);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(ask(health).status, 200);
  kill(process_, SIGTERM);
  EXPECT_EQ(wait(), 0);
}

// Pipes for standard output and standard error that nobody reads.
TEST_F(ServeProgram, NeverWaitsForWhoReadsWhatItSays) {
  ASSERT_EQ(mkfifo(path("out").c_str(), 0600), 0);
  const int out = open(path("out").c_str(), O_RDWR | O_CLOEXEC);  // and so the server's writes go nowhere, and do not fail
  start("--model en-de=" + kModel);
  const std::string where = url("");
  const std::string address = where + "/" + std::string(8000, 'x');  // stands in the log
  for (int i = 0; i < 700; ++i) ASSERT_EQ(ask(address).status, 404) << i;
  EXPECT_EQ(ask(where + "/health").status, 200);
  const std::string metrics = ask(where + "/metrics").body, name = "\nstarling_log_dropped_total{log=\"access\"} ";
  ASSERT_THAT(metrics, HasSubstr(name));
  EXPECT_GT(std::stod(metrics.substr(metrics.find(name) + name.size())), 10);
  kill(process_, SIGTERM);
  EXPECT_EQ(wait(), 0) << text("err");
  EXPECT_THAT(text("err"), HasSubstr("stopped\n"));
  close(out);
}

TEST_F(ServeProgram, OutlivesWhoReadsItsMessages) {
  ASSERT_EQ(mkfifo(path("err").c_str(), 0600), 0);
  const int reader = open(path("err").c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  write("keys", "ann 2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b\n");
  start("--api-keys keys --model en-de=" + kModel);
  std::string said;
  for (int i = 0; i < 30000 && said.find("listening at ") == std::string::npos; ++i, usleep(1000)) {
    char block[4096];
    if (const ssize_t n = read(reader, block, sizeof block); n > 0) said.append(block, static_cast<size_t>(n));
  }
  const std::string from = said.substr(said.find("http://")), where = from.substr(0, from.find('\n'));
  close(reader);
  write("keys", "broken\n");
  kill(process_, SIGHUP);  // which it tells, and is not heard
  const std::string lost = "starling_log_dropped_total{log=\"messages\"} ";
  for (int i = 0; i < 20000 && ask(where + "/metrics").body.find(lost + "0\n") != std::string::npos; ++i) usleep(1000);
  EXPECT_THAT(ask(where + "/metrics").body, testing::Not(HasSubstr(lost + "0\n")));
  kill(process_, SIGTERM);
  EXPECT_EQ(wait(), 0);
}

TEST_F(ServeProgram, StartsWithoutRoomForItsMessages) {
  std::filesystem::create_symlink("/dev/full", path("err"));
  std::filesystem::create_symlink("/dev/full", path("out"));
  const int manager = service_manager();
  start_under_manager("--model en-de=" + kModel);
  char block[8];
  EXPECT_EQ(recv(manager, block, sizeof block, 0), 7);  // READY=1
  kill(process_, SIGTERM);
  EXPECT_EQ(wait(), 0);
  close(manager);
}

TEST_F(ServeProgram, ServesWithFewOpenFiles) {
  open_files_ = 150;
  start("--model en-de=" + kModel);
  const std::string where = url("");
  EXPECT_THAT(text("err"), HasSubstr("at most 86 connections instead of 1000, because the process may open only 150 files (ulimit -n)\n"));
  const int port = std::stoi(where.substr(where.rfind(':') + 1));
  std::vector<std::unique_ptr<BareClient>> silent;
  for (int i = 0; i < 200; ++i) silent.push_back(std::make_unique<BareClient>(port));
  EXPECT_EQ(ask_json(where + "/translate", {{"q", "a house"}, {"source", "en"}, {"target", "de"}}).status, 200);
  kill(process_, SIGHUP);  // files can be opened, too
  EXPECT_TRUE(wait_for("err", "en to de: now " + kModel)) << text("err");
}

TEST_F(ServeProgram, OpensItsLogAgainThoughTheKeysAreBroken) {
  write("keys", "ann 2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b\n");
  start("--api-keys keys --access-log log --model en-de=" + kModel);
  const std::string health = url("/health");
  ASSERT_EQ(rename(path("log").c_str(), path("old").c_str()), 0);
  write("keys", "ann secret\n");
  kill(process_, SIGHUP);
  ASSERT_TRUE(wait_for("err", "not reloaded: keys:1: 'secret' is not the SHA-256 of a key"));
  const auto logged = [&] { return text("log").find("\"path\":\"/health\",\"status\":200") != std::string::npos; };
  for (int i = 0; i < 2000 && !logged(); ++i, usleep(10000)) {
    EXPECT_EQ(ask(health).status, 200);  // the file exists a moment before lines go to it
  }
  EXPECT_TRUE(logged());
}

// They are imported then, and not before.
TEST_F(ServeProgram, PackagesAreServedWhenAskedFor) {
  std::filesystem::create_directories(path("packages"));
  for (const auto& [source, target] : {std::pair("de", "en"), {"en", "fr"}}) {
    const ShellOutcome o =
        run(fmt::format("export --to argos --model {0} --source-language {1} --target-language {2} -o packages/{1}_{2}.argosmodel", kModel,
                        source, target));
    ASSERT_EQ(o.status, 0) << o.text;
  }
  write("packages/xx.argosmodel", "no archive");
  std::filesystem::create_directories(path("packages/translate-es_en/model"));
  write("packages/translate-es_en/metadata.json", R"({"from_code": "es", "to_code": "en"})");
  setenv("XDG_CACHE_HOME", path("cache").c_str(), 1);
  start("--packages packages --memory 300M --pivot en");
  unsetenv("XDG_CACHE_HOME");
  const std::string where = url("");
  EXPECT_EQ(ask(where + "/ready").status, 200);
  EXPECT_EQ(ask(where + "/languages").json()[0], nlohmann::json::parse(R"({"code":"de","name":"German","targets":["en","fr","de"]})"));
  EXPECT_THAT(text("err"), HasSubstr("skipped: packages/xx.argosmodel: not a zip archive; fetch it again\n"));
  const std::string missing =
      "translate-es_en: not a whole model: metadata.json is that of an Argos package, but its model/model.bin is missing; fetch or unpack "
      "it "
      "again";
  EXPECT_THAT(text("err"), HasSubstr("skipped: packages/" + missing + "\n"));
  const ClientAnswer refused = ask_json(where + "/translate", {{"q", "una casa"}, {"source", "es"}, {"target", "en"}});
  EXPECT_EQ(refused.status, 503);
  EXPECT_THAT(refused.body, HasSubstr("the model from es to en cannot be served: " + missing));
  EXPECT_THAT(text("err"), HasSubstr("2 models, loaded on demand into at most 300 MiB: de to en, en to fr\n"));
  EXPECT_THAT(text("err"), testing::Not(HasSubstr("importing")));
  const ClientAnswer answer = ask_json(where + "/translate", {{"q", "a house"}, {"source", "de"}, {"target", "fr"}});
  EXPECT_EQ(answer.status, 200) << answer.body << text("err");
  for (const char* said :
       {"importing packages/de_en.argosmodel to ", "de to en: ", "importing packages/en_fr.argosmodel to ", "en to fr: "})
    EXPECT_TRUE(wait_for("err", std::string("\n") + said)) << text("err");
  kill(process_, SIGTERM);
  EXPECT_EQ(wait(), 0);
}

// Options and their defaults as lines, sorted.
std::vector<std::string> matches_of(const std::string& text, const std::string& expression) {
  std::vector<std::string> all;
  const std::regex line(expression, std::regex::ECMAScript | std::regex::multiline);
  for (std::sregex_iterator i(text.begin(), text.end(), line), end; i != end; ++i) all.push_back((*i)[1].str() + " " + (*i)[2].str());
  std::sort(all.begin(), all.end());
  return all;
}

TEST_F(ServeProgram, HasTheOptionsOfItsPage) {
  const ShellOutcome help = run("serve --help-all");
  std::vector<std::string> options = matches_of(help.text, "^  (?:-[a-z],)?(--[a-z-]+)(?: [^\n]*?default ([^\\n;)]+)[^\n]*| [^\n]*|)$");
  std::erase_if(options, [](const std::string& option) { return option.starts_with("--help"); });
  EXPECT_GT(options.size(), 20u) << help.text;
  std::ifstream page(STARLING_SOURCE_DIR "/docs/reference/server.md");
  const std::string text{std::istreambuf_iterator<char>(page), {}};
  EXPECT_EQ(matches_of(text, "^\\| `(--[a-z-]+)` \\| ?([^|]*?) \\| "), options);
}

// One server under two names, as another one would be compared with.
TEST_F(ServeProgram, IsMeasuredBesideAnother) {
  start("--model en-de=" + kModel + " --access-log ''");
  const std::string address = url("");
  write("text", "a house\n\nthe dog runs\n");
  const ShellOutcome o = run_shell(
      fmt::format("{1} --url {0} --url {0}/ --source en --target de --input {2} --rounds 3 --seconds 0.2 --lone 3 --clients 2 --load 0.5",
                  address, STARLING_BENCH_SERVE, path("text")));
  EXPECT_EQ(o.status, 0) << o.text;
  const std::string table = "    load   requests/s [^\n]*\n    lone [^\n]*\n    full [^\n]*\n    50 % [^\n]*\n";
  const std::string block = "medians of 3 rounds, " + address + "\n" + table;
  EXPECT_TRUE(std::regex_search(o.text, std::regex(block + block + "$"))) << o.text;
  std::vector<double> rates, medians;  // of lone sentences at the second name
  std::istringstream lines(o.text);
  int number = 0;
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with("    lone ") && ++number % 2 == 0) (number > 6 ? medians : rates).push_back(std::stod(line.substr(9)));
  ASSERT_EQ(rates.size(), 3u);
  std::sort(rates.begin(), rates.end());
  EXPECT_EQ(medians, std::vector<double>{rates[1]});
}

TEST_F(ServeProgram, RefusesWhatItCannotServe) {
  const std::string model = " --model en-de=" + kModel + " ";
  const auto run_serve = [&](const std::string& arguments) { return run("serve --threads 1 " + arguments); };
  ShellOutcome o = run_serve("--listen 127.0.0.1:0 --model en-de=nothing");
  EXPECT_EQ(o.status, 2);
  EXPECT_THAT(o.text, HasSubstr("nothing: there is no such file or directory"));
  o = run_serve("--listen nonsense" + model);
  EXPECT_EQ(o.status, 2);
  EXPECT_THAT(o.text, HasSubstr("--listen nonsense: is not a valid address"));
  write("keys", "ann secret\n");
  o = run_serve("--listen 127.0.0.1:0 --api-keys keys" + model);
  EXPECT_EQ(o.status, 3);
  EXPECT_THAT(o.text, HasSubstr("keys:1: 'secret' is not the SHA-256 of a key"));
  o = run_serve("--listen 127.0.0.1:0 --max-body 2000000 --max-body-total 1000000" + model);
  EXPECT_EQ(o.status, 2);
  EXPECT_THAT(o.text, HasSubstr("--max-body-total 1000000: is less than --max-body 2000000, the limit for one request; raise it"));
  o = run_serve("--listen 127.0.0.1:0 --memory 4X" + model);
  EXPECT_EQ(o.status, 2);
  EXPECT_THAT(o.text, HasSubstr("--memory 4X: is not an amount of memory; write 500M or 4G"));
  o = run_serve("--listen 127.0.0.1:0 --pivot fr" + model);
  EXPECT_EQ(o.status, 2);
  EXPECT_THAT(o.text, HasSubstr("--pivot fr: it must be the target of one model and the source of another; the languages are en, de"));
  o = run_serve("--listen 127.0.0.1:0 --trust-proxy localhost" + model);
  EXPECT_EQ(o.status, 2);
  EXPECT_THAT(o.text, HasSubstr("localhost is not an IP address; write it in numbers: 127.0.0.1 or ::1"));
  o = run_serve("--listen 127.0.0.1:0 --access-log /nowhere/log" + model);
  EXPECT_EQ(o.status, 3);
  EXPECT_THAT(o.text, HasSubstr("/nowhere/log: cannot be opened for the access log: "));
}

}  // namespace
}  // namespace starling
