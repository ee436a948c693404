// The whole server but its process: a small model, real sockets, libcurl. Translations are compared with those of decode/translator.
#pragma once

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "decode/translator.h"
#include "serve/file_routes.h"
#include "serve/service.h"
#include "tests/serve/client.h"
#include "tests/serve/fixture_model.h"

namespace starling {

using Json = nlohmann::json;

class ServiceTest : public testing::Test {
 protected:
  // Starts it with the model from English to German, and back by the same one, or with these models.
  void start(ServiceOptions options = {}, ModelOptions model = {}, bool load = true,
             const std::vector<std::string>& models = {"en-de=" + kModel, "de-en=" + kModel}) {
    model.compute = {"f32", 2};
    std::vector<ModelSource> sources;
    for (const std::string& m : models) sources.push_back(parse_model_source(m));
    log_path_ = testing::TempDir() + "/serve_access_" + std::to_string(getpid()) + ".log";
    std::filesystem::remove(log_path_);
    log_.emplace(log_path_, metrics_);
    models_.emplace(std::move(sources), model, *files_, metrics_);
    if (load) models_->load();
    service_.emplace(*models_, options, *log_, metrics_);
    server_.emplace(
        "127.0.0.1:0", HttpLimits{.body_bytes = 200000, .file_bytes = options.files.bytes + 4096, .file_paths = kFilePaths},
        [this](auto request, auto reply) { return service_->handle(request, reply); },
        [this](const HttpRequest& request, int status, const std::string& why) { return service_->refuse(request, status, why); });
  }
  ~ServiceTest() override {
    server_.reset();
    if (service_) service_->stop();
    models_.reset();
  }
  std::string url(const std::string& path) const { return "http://127.0.0.1:" + std::to_string(server_->port()) + path; }
  ClientAnswer translate(Json json) const {
    if (!json.contains("source")) json["source"] = "en";
    if (!json.contains("target")) json["target"] = "de";
    return ask_json(url("/translate"), json);
  }
  // What the translator of files makes of lines: the n best of each.
  static std::vector<std::vector<std::string>> expected(const std::vector<std::string>& lines, int64_t n_best = 1,
                                                        const std::string& directory = kModel) {
    const auto files = real_file_system();
    const LoadedModel model = load_model(*files, directory, {"f32", 1});
    SearchOptions search = model.description.search;
    search.n_best = n_best, search.beam = std::max(search.beam, n_best);
    std::vector<std::vector<std::string>> all;
    for (const std::string& line : lines) {  // one by one: whatever else is in the batch
      all.emplace_back();
      Translator translator(*model.model, model.description.vocabularies, search);
      const auto translations = translator.translate(std::vector{line});
      for (const Translation& t : translations.front()) all.back().push_back(t.text);
    }
    return all;
  }
  std::string log_text() {
    log_->flush();
    std::ifstream in(log_path_);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  std::unique_ptr<FileSystem> files_ = real_file_system();
  Metrics metrics_;
  std::string log_path_;
  std::optional<AccessLog> log_;
  std::optional<ModelSet> models_;
  std::optional<Service> service_;
  std::optional<HttpServer> server_;
};

}  // namespace starling
