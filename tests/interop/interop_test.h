// What tests of models of other programs share: a directory of their own, imports into it, refusals.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "interop/describe_import.h"
#include "interop/import.h"

namespace starling {

inline std::vector<std::string> lines_of(const std::string& path) {
  std::ifstream in(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

// The message of the error that f throws; "" if it throws none.
template <class F>
std::string refusal(F f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

// Changes a setting in the config.yml or decode.yml of a model directory.
inline void change(const std::string& file, const std::string& from, const std::string& to) {
  std::string text = real_file_system()->read_file(file);
  const size_t at = text.find(from);
  ASSERT_NE(at, std::string::npos) << from;
  real_file_system()->write_file(file, text.replace(at, from.size(), to));
  std::filesystem::remove(parent_path(file) + "/manifest.json");
}

class InteropTest : public testing::Test {
 protected:
  InteropTest() {
    std::filesystem::remove_all(directory_);
    std::filesystem::create_directories(directory_);
  }
  ~InteropTest() override { std::filesystem::remove_all(directory_); }

  std::string path(const std::string& name) const { return directory_ + "/" + name; }
  // A path that does not exist yet.
  std::string fresh() { return path("output" + std::to_string(++count_)); }
  // Imports a model and returns its directory; said_ is what the verb prints.
  std::string imported(const std::string& from, const VocabularyFiles& vocabularies = {}) {
    const std::string output = fresh();
    said_ = import_text(import_model(*files_, {from, output, vocabularies, {}}), output);
    return output;
  }
  LoadedModel load(const std::string& directory, const std::string& precision = "f32") {
    return load_model(*files_, directory, {precision, 1});
  }
  std::vector<double> values_of(const std::string& directory) { return load(directory).model->parameters().values().to_doubles(); }

  const std::unique_ptr<FileSystem> files_ = real_file_system();
  const std::string directory_ = testing::TempDir() + "/interop." + std::to_string(getpid());
  std::string said_;

 private:
  int count_ = 0;
};

}  // namespace starling
