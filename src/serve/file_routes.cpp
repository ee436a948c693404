#include "serve/file_routes.h"

#include <algorithm>
#include <cmath>

#include "base/ascii.h"
#include "base/utf8.h"
#include "serve/deepl.h"
#include "serve/glossaries.h"
#include "text/language_match.h"
#include "text/languages.h"

namespace starling {
namespace {

const std::string kDownload = "/download_file/", kDocument = "/v2/document/";

// A file's name without folders and control characters.
std::string plain_name(const std::string& sent) {
  std::string name = sent.substr(sent.find_last_of("/\\") + 1);
  if (invalid_utf8_offset(name)) return "file";
  if (name.size() > 255) throw ApiError(400, "Invalid request: the file's name has more than 255 bytes");
  std::erase_if(name, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
  return name;
}

// The name in characters that need no quotes anywhere.
std::string ascii_name(const std::string& name) {
  std::string plain;
  for (const char c : name)
    if (is_ascii_letter_or_digit(c) || c == '.' || c == '-' || c == '_')
      plain += c;
    else if (c == ' ')
      plain += '_';
  while (plain.starts_with('.')) plain.erase(0, 1);
  return plain;
}

// "letter.docx" translated into German is letter_de.docx.
std::string translated_name(const FileJobs::File& file) {
  const size_t dot = std::min(file.name.rfind('.'), file.name.size());
  return fmt::format("{}_{}{}", file.name.substr(0, dot), file.target, file.name.substr(dot));
}

// A file to be kept, never shown: a page of somebody's must not run as one of this server's.
HttpResponse file_answer(FileJobs::File file) {
  const std::string name = translated_name(file);
  std::string escaped;
  for (const char c : name)
    if (is_ascii_letter_or_digit(c) || c == '.' || c == '-' || c == '_')
      escaped += c;
    else
      escaped += fmt::format("%{:02X}", static_cast<unsigned char>(c));
  return {200,
          std::move(file.bytes),
          "application/octet-stream",
          {{"Content-Disposition", fmt::format("attachment; filename=\"{}\"; filename*=UTF-8''{}", ascii_name(name), escaped)},
           {"X-Content-Type-Options", "nosniff"},
           {"Content-Security-Policy", "sandbox; default-src 'none'"},
           {"Cache-Control", "no-store"}}};
}

const std::string* value_of(const NamedValues& values, const std::string& name) {
  const auto found = std::ranges::find(values, name, &NamedValues::value_type::first);
  return found == values.end() ? nullptr : &found->second;
}

// The address of this server as the client knows it; "" if it does not say.
std::string own_address(const HttpRequest& request) {
  const std::string_view host = request.header("host");
  const bool plain = !host.empty() && std::ranges::all_of(host, [](char c) {
    return is_ascii_letter_or_digit(c) || std::string_view(".-_:[]").find(c) != std::string_view::npos;
  });
  return plain ? fmt::format("{}://{}", request.header("x-forwarded-proto") == "https" ? "https" : "http", host) : "";
}

}  // namespace

FileQuery parse_translate_file(const HttpRequest& request) {
  const RequestValues values(request);
  const std::string* bytes = value_of(request.fields, "file");
  const std::string* name = value_of(request.files, "file");
  if (!bytes || !name)
    throw ApiError(
        400, "Invalid request: missing file parameter; send it as a file in a form (multipart/form-data), as curl -F file=@NAME does");
  FileQuery query{plain_name(*name), "", values.required("source"), values.required("target")};
  if (query.name.empty() || bytes->empty()) throw ApiError(400, "Invalid request: empty file");
  for (const std::string& code : {query.source, query.target})
    if (code.size() > 40 || (code != "auto" && !is_language_code(comparable_language(code))))
      throw ApiError(400, fmt::format("{} is not supported", code.substr(0, 40)));
  if (query.target == "auto") throw ApiError(400, "auto is not supported as target");
  query.glossary = glossary_of(values);
  query.bytes = *bytes;
  return query;
}

HttpResponse translate_file_answer(const HttpRequest& request, const std::string& id, const std::string& name) {
  return json_response(200, {{"translatedFileUrl", own_address(request) + kDownload + id + "." + ascii_name(name)}});
}

HttpResponse download_answer(FileJobs& jobs, const std::string& path) {
  const std::string name = path.substr(kDownload.size());
  auto file = jobs.file(name.substr(0, name.find('.')), false);
  if (!file) throw ApiError(404, "this file does not exist or has been deleted; send it for translation again");
  return file_answer(std::move(*file));
}

FileQuery parse_deepl_document(const HttpRequest& request, std::span<const Direction> models) {
  const RequestValues values(request);
  const std::string* bytes = value_of(request.fields, "file");
  const std::string* sent = value_of(request.files, "file");
  if (!bytes) throw ApiError(400, "Parameter 'file' not specified; send it in a form (multipart/form-data)");
  FileQuery query;
  query.name = plain_name(values.text("filename").value_or(sent ? *sent : ""));
  if (query.name.empty()) throw ApiError(400, "Parameter 'filename' not specified; its ending names the file's format");
  if (bytes->empty()) throw ApiError(400, "Invalid file data: the file is empty");
  query.target = known_language(specified(values, "target_lang"), models, "target_lang");
  const auto source = values.text("source_lang");
  query.source = source ? known_language(*source, models, "source_lang") : "auto";
  refuse_document_options(values);
  query.glossary_id = values.text("glossary_id").value_or("");
  const std::string ending = query.name.substr(std::min(query.name.rfind('.'), query.name.size() - 1) + 1);
  if (const auto output = values.text("output_format"); output && *output != ending)
    throw ApiError(400, fmt::format("Value for 'output_format' not supported: {}; leave it out, since files keep their format", *output));
  query.bytes = *bytes;
  return query;
}

HttpResponse deepl_document_answer(const FileJobs& jobs, const std::string& id) {
  return json_response(200, {{"document_id", id}, {"document_key", jobs.status(id).value_or(FileJobs::Status{}).key}});
}

HttpResponse deepl_document_state(FileJobs& jobs, const HttpRequest& request) {
  std::string id = request.path.substr(kDocument.size());
  const bool result = id.ends_with("/result");
  if (result) id.resize(id.size() - 7);
  const auto status = jobs.status(id);
  if (!status || RequestValues(request).text("document_key").value_or("") != status->key)
    throw ApiError(404, "Document not found: it was already downloaded, has expired, or document_key does not belong to it");
  if (result) {
    if (status->state == FileJobs::State::failed) throw ApiError(400, status->error);
    auto file = jobs.file(id, request.method != "HEAD");
    if (!file) throw ApiError(503, "The document is not translated yet; try again later");
    return file_answer(std::move(*file));
  }
  constexpr const char* kStates[] = {"queued", "translating", "done", "error"};
  nlohmann::ordered_json json{{"document_id", id}, {"status", kStates[static_cast<size_t>(status->state)]}};
  if (status->seconds_left) json["seconds_remaining"] = std::ceil(*status->seconds_left);
  if (status->state == FileJobs::State::done) json["billed_characters"] = status->characters;
  if (status->state == FileJobs::State::failed) json["message"] = json["error_message"] = status->error;
  return json_response(200, json);
}

}  // namespace starling
