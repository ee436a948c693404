// Translates a file that a client sent, of any format of file_format(), piece by piece through the same queues as all other texts.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "serve/translation_job.h"

namespace starling {

struct FileQuery {
  std::string name;  // as the client calls it, without folders
  std::string bytes;
  std::string source;  // "auto": detect it
  std::string target;
  std::shared_ptr<const Glossary> glossary = nullptr;
  std::string glossary_id = {};  // DeepL's, until it is found
};

struct FileWatch {
  std::function<bool()> stopped;            // asked every tenth of a second
  std::function<void(double share)> share;  // called with the share of the text that is translated
};

// Returns the format of the file. Throws ApiError 400 for what is not supported.
std::string supported_format(const FileQuery& file);

// Returns the translated file, or nothing if it was stopped. Throws ApiError: 400 for a broken file and for languages without a model, 504
// at the deadline, others as start_translation(). Adds to `size`. `most_unpacked` limits the bytes of text and tags in an archive.
std::optional<std::string> translate_file(ModelSet& models, FileQuery file, JobOptions options, uint64_t most_unpacked, double deadline,
                                          JobSize& size, const FileWatch& watch);

}  // namespace starling
