#include "serve/glossaries.h"

#include <algorithm>
#include <chrono>
#include <random>

#include "base/iso_time.h"
#include "base/json.h"
#include "formats/csv.h"
#include "serve/deepl.h"

namespace starling {
namespace {

using Json = nlohmann::ordered_json;

// Returns 128 random bits, as ids of DeepL look.
std::string new_id() {
  std::random_device random;
  std::string id = fmt::format("{:08x}{:08x}{:08x}{:08x}", random(), random(), random(), random());
  for (const size_t at : {20, 16, 12, 8}) id.insert(at, "-");
  return id;
}

// Returns the time as DeepL writes it, whose clients insist on the fraction of the second.
std::string time_now() {
  const auto now = std::chrono::system_clock::now();
  const auto fraction = std::chrono::duration_cast<std::chrono::microseconds>(now.time_since_epoch()).count() % 1'000'000;
  std::string time = iso_time(now);
  return time.insert(time.size() - 1, fmt::format(".{:06}", fraction));
}

std::shared_ptr<const Glossary> parsed(std::string_view terms) {
  try {
    return Glossary::parse(terms, "glossary");
  } catch (const DataError& e) {
    throw ApiError(400, e.what());
  }
}

}  // namespace

Glossaries::Glossaries(std::string directory) : directory_(std::move(directory)) {
  if (directory_.empty()) return;
  files_->make_directories(directory_);
  for (const std::string& name : files_->list(directory_)) {
    if (name.starts_with(".tmp-")) files_->remove(join_path(directory_, name));  // what a crash has left
    if (name.starts_with('.') || !name.ends_with(".json")) continue;
    const std::string path = join_path(directory_, name);
    const nlohmann::json json = parse_json_object(files_->read_file(path, uint64_t{64} << 20), path);
    Entry e;
    try {
      e = {json.at("name"),
           json.at("source_lang"),
           json.at("target_lang"),
           json.at("creation_time"),
           json.at("owner"),
           json.at("entries"),
           {}};
    } catch (const nlohmann::json::exception&) {
      throw DataError(fmt::format("{}: this is not a glossary of the server; move it out of the directory that --glossaries names", path));
    }
    e.glossary = Glossary::parse(e.terms, path);
    all_.emplace(name.substr(0, name.size() - 5), std::move(e));
  }
}

Json Glossaries::described(const All::value_type& entry) {
  const Entry& e = entry.second;
  return {{"glossary_id", entry.first},        {"ready", true},           {"name", e.name},
          {"source_lang", e.source},           {"target_lang", e.target}, {"creation_time", e.created},
          {"entry_count", e.glossary->terms()}};
}

HttpResponse Glossaries::create(const RequestValues& values, const std::string& owner, std::span<const Direction> models) {
  const std::string format = values.text("entries_format").value_or("tsv"), entries = specified(values, "entries");
  if (format != "tsv" && format != "csv") throw ApiError(400, fmt::format("Value for 'entries_format' not supported: {}", format));
  Entry e{.name = specified(values, "name"),
          .source = known_language(specified(values, "source_lang"), models, "source_lang"),
          .target = known_language(specified(values, "target_lang"), models, "target_lang"),
          .created = time_now(),
          .owner = owner,
          .terms = format == "csv" ? lines_of_csv(entries, ',', 2) : entries,  // languages may follow the terms
          .glossary = {}};
  e.glossary = parsed(e.terms);
  const std::lock_guard lock(mutex_);
  if (e.terms.size() + e.name.size() > kMostBytesEach)
    throw ApiError(413, fmt::format("the glossary is larger than {} bytes; split it", kMostBytesEach));
  size_t terms = e.glossary->size(), bytes = e.terms.size() + e.name.size();
  for (const auto& [id, other] : all_) terms += other.glossary->size(), bytes += other.terms.size() + other.name.size();
  if (terms > kMostTerms || bytes > kMostBytes)
    throw ApiError(456, fmt::format("the glossaries would have more than {} terms or {} bytes; delete some", kMostTerms, kMostBytes));
  const auto added = all_.emplace(new_id(), std::move(e)).first;
  const Entry& kept = added->second;
  Json json = described(*added);
  if (!directory_.empty()) {
    try {
      const Json file{{"name", kept.name},   {"source_lang", kept.source}, {"target_lang", kept.target}, {"creation_time", kept.created},
                      {"owner", kept.owner}, {"entries", kept.terms}};
      files_->replace_file(join_path(directory_, added->first + ".json"), json_text(file));
    } catch (const Error&) {
      all_.erase(added);
      throw;
    }
  }
  return json_response(201, json);
}

Glossaries::All::const_iterator Glossaries::at(const std::string& id, const std::string& owner) const {
  const auto found = all_.find(id);
  if (found == all_.end() || found->second.owner != owner) throw ApiError(404, "Glossary not found");
  return found;
}

HttpResponse Glossaries::answer(const HttpRequest& request, const std::string& owner, std::span<const Direction> models) {
  constexpr std::string_view kAll = "/v2/glossaries", kEntries = "/entries";
  std::string id = request.path.substr(std::min(kAll.size() + 1, request.path.size()));
  const bool entries = id.ends_with(kEntries), get = request.method == "GET" || request.method == "HEAD";
  if (entries) id.resize(id.size() - kEntries.size());
  if (id.empty() && request.method == "POST") return create(RequestValues(request), owner, models);
  const std::lock_guard lock(mutex_);
  if (id.empty() && get) {
    Json list = Json::array();
    for (const auto& entry : all_)
      if (entry.second.owner == owner) list.push_back(described(entry));
    return json_response(200, {{"glossaries", list}});
  }
  if (id.empty()) throw ApiError(405, fmt::format("{} takes GET and POST", request.path));
  const auto found = at(id, owner);
  if (entries && get) return {200, found->second.terms, "text/tab-separated-values; charset=utf-8", {}};
  if (get) return json_response(200, described(*found));
  if (entries || request.method != "DELETE") throw ApiError(405, fmt::format("{} takes GET{}", request.path, entries ? "" : " and DELETE"));
  if (!directory_.empty()) files_->remove(join_path(directory_, id + ".json"));
  all_.erase(found);
  return {204, "", "", {}};
}

std::shared_ptr<const Glossary> Glossaries::find(const std::string& id, const std::string& owner, const std::string& source,
                                                 const std::string& target) const {
  if (source == "auto") throw ApiError(400, "'glossary_id' needs 'source_lang'; send it too");
  const std::lock_guard lock(mutex_);
  const Entry& e = at(id, owner)->second;
  if (e.source != source || e.target != target)
    throw ApiError(400, fmt::format("the glossary is for {} to {}, but the request is for {} to {}; choose another one", e.source, e.target,
                                    source, target));
  return e.glossary;
}

std::shared_ptr<const Glossary> glossary_of(const RequestValues& values) {
  constexpr size_t kMost = 1000;  // terms of a request
  std::string terms;
  if (const auto object = values.object("glossary")) {
    const auto in_line = [](std::string text) {
      for (char& c : text) c = c == '\t' || c == '\n' ? ' ' : c;
      return text;
    };
    for (const auto& [term, translation] : object->items()) {
      terms += in_line(term);
      const nlohmann::json spellings = translation.is_array() ? translation : nlohmann::json::array({translation});
      for (const auto& spelling : spellings) {
        if (!spelling.is_string())
          throw ApiError(400, fmt::format("Invalid request: the glossary's translation of '{}' is not a string", term));
        terms += "\t" + in_line(spelling.get<std::string>());
      }
      terms += '\n';
    }
  } else if (const auto text = values.text("glossary")) {
    terms = *text;
  }
  if (terms.empty()) return nullptr;
  const auto glossary = parsed(terms);
  if (glossary->size() > kMost)
    throw ApiError(400,
                   fmt::format("Invalid request: the glossary has {} terms, but a request may have at most {}", glossary->size(), kMost));
  return glossary;
}

}  // namespace starling
