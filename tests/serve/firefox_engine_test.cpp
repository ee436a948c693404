// A model exported for Firefox's engine translates in a browser: bergamot-translator's WebAssembly in a worker of a page in headless
// Chromium, beside Starling. Skipped without Chromium, or without BERGAMOT_PACKAGE: the folder in which npm has installed
// @browsermt/bergamot-translator.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <sstream>

#include "base/files.h"
#include "base/text_files.h"
#include "http/http.h"
#include "tests/cli/program.h"
#include "tests/serve/browser.h"

namespace starling {
namespace {

using Json = nlohmann::json;

// Speaks with the worker as its messages are: {id, name, args} there, {id, result, error} back.
constexpr const char* kPage = R"(<!doctype html><title>engine</title><script>
const worker = new Worker('translator-worker.js'), waiting = new Map();
let last = 0;
worker.onmessage = ({data: {id, result, error}}) => {
  const {resolve, reject} = waiting.get(id);
  error ? reject(new Error(error.message ?? error)) : resolve(result);
};
const call = (name, ...args) => new Promise((resolve, reject) => {
  waiting.set(++last, {resolve, reject});
  worker.postMessage({id: last, name, args});
});
const bytes = async name => (await fetch(name)).arrayBuffer();
async function translated(lines, config) {
  const pair = {from: 'aa', to: 'bb'};
  await call('initialize', {cacheSize: 0});
  await call('loadTranslationModel', pair,
             {model: await bytes('model.bin'), shortlist: new ArrayBuffer(0), vocabs: [await bytes('vocab.spm')], config});
  const results = [];
  for (const text of lines) {
    const [response] = await call('translate', {models: [pair], texts: [{text, html: false, qualityScores: false}]});
    results.push(response.target.text);
  }
  return results;
}
</script>)";

class FirefoxEngine : public ProgramTest {
 protected:
  void SetUp() override {
    const char* folder = std::getenv("BERGAMOT_PACKAGE");
    if (test::Browser::program().empty()) GTEST_SKIP() << "without Chromium";
    if (!folder || !*folder) GTEST_SKIP() << "without BERGAMOT_PACKAGE, a folder where npm has installed @browsermt/bergamot-translator";
    worker_ = std::string(folder) + "/node_modules/@browsermt/bergamot-translator/worker/";
    server_.emplace(
        "127.0.0.1:0", HttpLimits{},
        [this](std::shared_ptr<const HttpRequest> r, HttpServer::Reply reply) -> HttpServer::Cancel {
          reply(answer(r->path));
          return nullptr;
        },
        [](const HttpRequest&, int status, const std::string& why) {
          return HttpResponse{status, why, "text/plain", {}};
        });
  }
  HttpResponse answer(const std::string& path) const {
    if (path == "/") return {200, kPage, "text/html; charset=utf-8", {}};
    const std::string name = path.substr(1), place = name.find("worker") == name.npos ? this->path("firefox/" + name) : worker_ + name;
    if (name.find('/') != name.npos || !std::filesystem::exists(place)) return {404, "", "text/plain", {}};
    const char* type = name.ends_with(".js")     ? "text/javascript"
                       : name.ends_with(".wasm") ? "application/wasm"
                                                 : "application/octet-stream";
    return {200, real_file_system()->read_file(place), type, {}};
  }

  std::string worker_;
  std::optional<HttpServer> server_;
};

TEST_F(FirefoxEngine, TranslatesAsStarlingDoes) {
  const std::string marian = STARLING_SOURCE_DIR "/tests/fixtures/marian/";
  ASSERT_EQ(run("import " + marian + "ssru --vocab " + marian + "v.spm -o model").status, 0);
  ASSERT_EQ(run("export --to bergamot -m model -o firefox").status, 0);
  std::istringstream text(read_text_file(marian + "s.en"));
  std::vector<std::string> lines;
  for (std::string line; lines.size() < 10 && std::getline(text, line);) lines.push_back(line);
  std::string input, ours;
  for (const std::string& line : lines) input += line + "\n";
  write("input", input);
  ASSERT_EQ(run("translate --model model --precision f32 --threads 1 --beam 4 --length-penalty 0 --max-length-factor 2 --max-length-offset "
                "0 --replace-ended=false --min-length 0 "
                "--quiet -i input -o ours")
                .status,
            0);
  test::Browser browser;
  browser.call("Page.navigate", {{"url", "http://127.0.0.1:" + std::to_string(server_->port()) + "/"}});
  ASSERT_TRUE(browser.becomes_true("typeof translated == 'function'"));
  const Json theirs = browser.value("translated(" + Json(lines).dump() +
                                    ", {'gemm-precision': 'float32', 'skip-cost': 'false', 'beam-size': '4', 'normalize': '0', "
                                    "'max-length-factor': '2'})");
  std::string all;
  for (const Json& line : theirs) all += line.get<std::string>() + "\n";
  EXPECT_GT(all.size(), 10 * lines.size()) << "more than line ends";
  EXPECT_EQ(all, read_text_file(path("ours")));
}

}  // namespace
}  // namespace starling
