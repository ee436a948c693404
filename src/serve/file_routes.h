// Where clients send files and fetch their translations: LibreTranslate's /translate_file and /download_file, DeepL's /v2/document.
#pragma once

#include "serve/file_jobs.h"

namespace starling {

// Where files are sent.
inline const std::vector<std::string> kFilePaths = {"/translate_file", "/v2/document"};

// Parses POST /translate_file. Throws ApiError 400 for what is missing or wrong.
FileQuery parse_translate_file(const HttpRequest& request);
// Answers it: where the translation lies. `id` is what FileJobs calls it.
HttpResponse translate_file_answer(const HttpRequest& request, const std::string& id, const std::string& name);
// Answers GET /download_file/NAME. Throws ApiError 404 for what is not there.
HttpResponse download_answer(FileJobs& jobs, const std::string& path);

// Parses POST /v2/document, and answers it.
FileQuery parse_deepl_document(const HttpRequest& request, std::span<const Direction> models);
HttpResponse deepl_document_answer(const FileJobs& jobs, const std::string& id);
// Answers /v2/document/ID and /v2/document/ID/result.
HttpResponse deepl_document_state(FileJobs& jobs, const HttpRequest& request);

}  // namespace starling
