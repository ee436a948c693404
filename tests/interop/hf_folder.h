// A folder of Hugging Face's in a test's hands: copied from a fixture or an export, changed and written again. Safetensors files are read
// here byte by byte, without Starling's reader.
#pragma once

#include <cstring>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "storage/safetensors.h"
#include "tests/interop/interop_test.h"

namespace starling {

struct HfArray {
  std::vector<int64_t> shape;
  std::vector<float> values;
};
using HfArrays = std::map<std::string, HfArray>;

class HfFolder {
 public:
  HfFolder(std::string from, std::string path) : path_(std::move(path)) {
    std::filesystem::remove_all(path_);
    std::filesystem::copy(from, path_);
  }
  const std::string& path() const { return path_; }
  std::string file(const std::string& name) const { return path_ + "/" + name; }
  std::string read(const std::string& name) const { return files_->read_file(file(name)); }
  void write(const std::string& name, const std::string& content) const { files_->write_file(file(name), content); }
  void remove(const std::string& name) const { std::filesystem::remove(file(name)); }
  nlohmann::json json(const std::string& name) const { return nlohmann::json::parse(read(name)); }
  // Sets a key of a JSON file; null removes it.
  void set(const std::string& name, const std::string& key, const nlohmann::json& value) const {
    nlohmann::json all = json(name);
    if (value.is_null())
      all.erase(key);
    else
      all[key] = value;
    write(name, all.dump());
  }
  // The tensors of a file of f32.
  HfArrays arrays(const std::string& name = "model.safetensors") const {
    const std::string bytes = read(name);
    uint64_t length = 0;
    std::memcpy(&length, bytes.data(), 8);
    HfArrays arrays;
    const nlohmann::json header = nlohmann::json::parse(bytes.substr(8, length));
    for (const auto& [tensor, entry] : header.items()) {
      if (tensor == "__metadata__") continue;
      EXPECT_EQ(entry["dtype"], "F32") << tensor;
      HfArray a{entry["shape"].get<std::vector<int64_t>>(), {}};
      const auto begin = entry["data_offsets"][0].get<size_t>(), end = entry["data_offsets"][1].get<size_t>();
      a.values.resize((end - begin) / 4);
      std::memcpy(a.values.data(), bytes.data() + 8 + length + begin, end - begin);
      arrays[tensor] = std::move(a);
    }
    return arrays;
  }
  void store(const HfArrays& arrays, const std::string& name = "model.safetensors") const {
    nlohmann::json header = nlohmann::json::object();
    std::string data;
    for (const auto& [tensor, a] : arrays) {
      const size_t begin = data.size();
      data.append(reinterpret_cast<const char*>(a.values.data()), 4 * a.values.size());
      header[tensor] = {{"dtype", "F32"}, {"shape", a.shape}, {"data_offsets", {begin, data.size()}}};
    }
    const std::string text = header.dump();
    const uint64_t length = text.size();
    write(name, std::string(reinterpret_cast<const char*>(&length), 8) + text + data);
  }

 private:
  std::string path_;
  std::unique_ptr<FileSystem> files_ = real_file_system();
};

}  // namespace starling
