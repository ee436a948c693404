// DeepL's glossaries: /v2/glossaries creates, lists, shows and deletes them, and glossary_id of /v2/translate names one.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "base/files.h"
#include "decode/glossary.h"
#include "serve/api.h"

namespace starling {

class Glossaries {
 public:
  // Of all glossaries together: spellings, about 200 bytes each, and bytes of their texts.
  static constexpr size_t kMostTerms = 500'000, kMostBytes = size_t{128} << 20, kMostBytesEach = size_t{16} << 20;

  // Keeps each glossary as a file in a directory, which is made if it is missing, and reads those that are there; with "" they are kept in
  // memory only. Throws IoError, and DataError for a file that is none.
  explicit Glossaries(std::string directory);

  // Answers a request to a path that begins with /v2/glossaries. `owner` is the name of the client's API key: nobody sees the glossaries of
  // others. Throws ApiError.
  HttpResponse answer(const HttpRequest& request, const std::string& owner, std::span<const Direction> models);
  // Returns a glossary that is to be used between two languages. Throws ApiError.
  std::shared_ptr<const Glossary> find(const std::string& id, const std::string& owner, const std::string& source,
                                       const std::string& target) const;

 private:
  struct Entry {
    std::string name, source, target, created, owner, terms;  // terms: as lines with tabs
    std::shared_ptr<const Glossary> glossary;
  };
  using All = std::map<std::string, Entry>;  // by id
  HttpResponse create(const RequestValues& values, const std::string& owner, std::span<const Direction> models);
  All::const_iterator at(const std::string& id, const std::string& owner) const;
  static nlohmann::ordered_json described(const All::value_type& entry);

  const std::string directory_;
  const std::unique_ptr<FileSystem> files_ = real_file_system();
  mutable std::mutex mutex_;
  All all_;  // guarded by mutex_
};

// Returns the glossary of a request to /translate: an object of terms and their translations, or lines with tabs; null if there is none.
std::shared_ptr<const Glossary> glossary_of(const RequestValues& values);

}  // namespace starling
