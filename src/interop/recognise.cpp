#include "interop/recognise.h"

#include <algorithm>

#include "base/ascii.h"
#include "base/json.h"
#include "interop/ct2_file.h"
#include "interop/hf.h"

namespace starling {
namespace {

constexpr const char *kCt2 = "model.bin", *kMetadata = "metadata.json", *kHfConfig = "config.json";
constexpr size_t kBegin = 512;                     // bytes of a file that tell what it is
constexpr size_t kMostMetadata = size_t{1} << 20;  // bytes

bool is_ours(FileSystem& files, const std::string& path) {
  const auto has = [&](const char* name) { return files.exists(join_path(path, name)); };
  if (has("checkpoints") || has("best")) return true;
  if (has("config.yml")) return has("model.safetensors") || has("events.jsonl");
  return has("model.safetensors") && !has(kHfConfig);
}

// The models of CTranslate2's in a folder; of those below only if it has none itself.
std::vector<std::string> ct2_models(const ForeignFiles& folder) {
  std::vector<std::string> models;
  for (const std::string& name : folder.names()) {
    if (file_name(name) != kCt2) continue;
    try {
      if (!is_ct2(folder.peek(name, kBegin))) continue;
      if (at_top(name)) return {name};
      models.push_back(name);
    } catch (const DataError&) {
      if (at_top(name)) throw;
    }
  }
  return models;
}

// What the user might do, by what else is there.
std::string advice(FileSystem& files, const ForeignFiles& folder, const std::string& path) {
  const std::vector<std::string>& names = folder.names();
  const auto named = [&](auto property) {
    const auto found = std::find_if(names.begin(), names.end(), property);
    return found == names.end() ? std::string() : *found;
  };
  const auto tells = [](const std::string& n) {
    return n.ends_with("/config.json") || n.ends_with("/config.yml") || n.ends_with("/metadata.json");
  };
  if (const std::string below = named(tells); !below.empty())
    return fmt::format("; name a folder in it, such as {}", join_path(path, parent_path(below)));
  if (const std::string snapshots = join_path(path, "snapshots"); files.info(snapshots).kind == FileKind::directory)
    for (const std::string& name : files.list(snapshots)) return fmt::format("; name a folder in it: {}", join_path(snapshots, name));
  const auto tar = [](const std::string& n) { return n.ends_with(".tar") || n.ends_with(".tar.gz") || n.ends_with(".tgz"); };
  if (const std::string name = named(tar); !name.empty()) return fmt::format("; unpack {} (tar xf) and name the folder", name);
  if (const std::string name = named([](const std::string& n) { return n.ends_with(".zip") || n.ends_with(".argosmodel"); }); !name.empty())
    return fmt::format("; name the archive: {}", join_path(path, name));
  return "";
}

[[noreturn]] void refuse(FileSystem& files, const ForeignFiles& folder, const std::string& path) {
  const auto part_of = [&](const char* what) { throw ConfigError(fmt::format("{}: not a whole model: {}", path, what)); };
  for (const std::string& name : folder.names())
    if (file_name(name) == kCt2 && folder.peek(name, kBegin).empty())  // which throws what stands in for it
      throw DataError(fmt::format("{}: is empty; fetch it again", folder.where(name)));
  if (folder.has(kMetadata) && folder.peek(kMetadata, kMostMetadata).find("\"from_code\"") != std::string::npos)
    part_of("metadata.json is that of an Argos package, but its model/model.bin is missing; fetch or unpack it again");
  if (folder.has(kHfConfig) && !folder.has("config.yml"))
    part_of("config.json is that of a Hugging Face model, but there is no *.safetensors; fetch the weights too");
  throw ConfigError(
      fmt::format("{}: not a model: neither a Starling run or model directory (config.yml and model.safetensors, or checkpoints), nor "
                  "CTranslate2's or Argos' model.bin, nor Hugging Face's config.json with *.safetensors, nor a *.npz or *.bin of Marian, "
                  "OPUS-MT or Firefox is there{}",
                  path, advice(files, folder, path)));
}

// A file that is not an archive.
RecognisedModel recognise_file(const std::string& path, std::unique_ptr<ForeignFiles> folder) {
  const std::string name = file_name(path);
  const auto kind_of = [&](ModelKind kind, MarianFiles marian = {}) {
    return RecognisedModel{kind, std::move(folder), kind == ModelKind::hf ? "" : name, std::move(marian)};
  };
  const std::string begin = folder->peek(name, kBegin);
  if (name.ends_with(".safetensors") && folder->has("config.yml"))
    throw ConfigError(fmt::format("{}: name the model directory: {}", path, parent_path(path)));
  if (is_hf_weights(name) && folder->has(kHfConfig)) return kind_of(ModelKind::hf);
  if (is_ct2(begin)) return kind_of(ModelKind::ct2);
  if (is_marian_model(*folder, name)) return kind_of(ModelKind::marian, find_marian(*folder, name, parent_path(path)));
  for (const char* end : {".zip", ".argosmodel"})
    if (name.ends_with(end)) throw DataError(fmt::format("{}: not a zip archive; fetch it again", path));
  for (const char* end : {".tar", ".tar.gz", ".tgz"})
    if (name.ends_with(end)) throw ConfigError(fmt::format("{}: unpack it (tar xf) and name the folder", path));
  if (begin.empty()) throw DataError(fmt::format("{}: is empty; fetch it again", path));
  throw ConfigError(
      fmt::format("{}: not a model: neither a zip archive, nor a model.bin of CTranslate2, nor a *.npz or *.bin of Marian, OPUS-MT or "
                  "Firefox; of other models, name the folder",
                  path));
}

}  // namespace

RecognisedModel recognise(FileSystem& files, const std::string& path) {
  if (files.info(path).kind == FileKind::directory && is_ours(files, path)) return {};
  auto folder = open_foreign(files, path);
  if (folder->directory() == parent_path(path) && files.info(path).kind != FileKind::directory)
    return recognise_file(path, std::move(folder));
  std::vector<std::string> ct2 = ct2_models(*folder);
  if (!ct2.empty() && at_top(ct2[0])) return {ModelKind::ct2, std::move(folder), ct2[0], {}};
  if (is_hf(*folder)) return {ModelKind::hf, std::move(folder), "", {}};
  std::vector<std::string> all = marian_models(*folder);
  if (ct2.empty() || (!all.empty() && at_top(all[0]))) {
    MarianFiles marian = find_marian(*folder, "", path);
    if (marian.weights.empty()) refuse(files, *folder, path);
    return {ModelKind::marian, std::move(folder), marian.weights, marian};
  }
  all.insert(all.end(), ct2.begin(), ct2.end());
  if (all.size() == 1) return {ModelKind::ct2, std::move(folder), ct2[0], {}};
  throw ConfigError(fmt::format("{}: there are {} models in it; name the folder of one, such as {}", path, all.size(),
                                join_path(path, parent_path(all[0]))));
}

Languages languages_beside(const ForeignFiles& folder, const std::string& weights) {
  Languages languages;
  if (folder.has(kMetadata)) {
    const std::string text = folder.peek(kMetadata, kMostMetadata), where = folder.where(kMetadata);
    if (text.size() == kMostMetadata) throw DataError(fmt::format("{}: has 1 MiB or more, where some languages are named", where));
    const nlohmann::json json = parse_json_object(text, where);
    for (const auto& [key, to] : {std::pair{"from_code", &languages.source},
                                  {"to_code", &languages.target},
                                  {"sourceLanguage", &languages.source},
                                  {"targetLanguage", &languages.target}})
      if (json.contains(key) && json[key].is_string() && is_language_code(json[key].get<std::string>())) *to = json[key].get<std::string>();
  }
  // model.ende.intgemm.alphas.bin: codes of two letters
  const std::string begin = "model.", name = file_name(weights);
  const size_t end = name.find('.', begin.size());
  if (languages.source.empty() && name.starts_with(begin) && end == begin.size() + 4 &&
      std::all_of(name.begin() + 6, name.begin() + 10, is_ascii_letter))
    languages.source = name.substr(6, 2), languages.target = name.substr(8, 2);
  return languages;
}

Languages named_languages(FileSystem& files, const std::string& path) {
  const FileInfo info = files.info(path);
  if (info.kind == FileKind::missing || (info.kind == FileKind::directory && is_ours(files, path))) return {};
  const auto folder = open_foreign(files, path);
  const bool alone = info.kind == FileKind::file && folder->directory() == parent_path(path);
  std::string weights = alone ? file_name(path) : "";
  for (const std::string& name : folder->names())
    if (!alone && weights.empty() && at_top(name) && name.starts_with("model.")) weights = name;
  return languages_beside(*folder, weights);
}

}  // namespace starling
