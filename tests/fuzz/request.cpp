// libFuzzer's target for what clients send: JSON, forms and fields, read as LibreTranslate's and DeepL's requests, and the answers to them.
#include <cstdint>
#include <cstdlib>

#include "base/utf8.h"
#include "http/forms.h"
#include "serve/deepl.h"
#include "serve/libretranslate.h"

namespace {

using namespace starling;

void require(bool condition) {
  if (!condition) std::abort();
}

const std::vector<Direction> kModels{{"en", "de"}, {"de", "en"}, {"pt-BR", "zh-Hant"}};

// All that may come of a request is a refusal with status 400, or what can be answered in JSON.
template <class Deed>
void refused_or(const Deed& deed) {
  try {
    const HttpResponse answer = deed();
    require(answer.status == 200 && nlohmann::json::accept(answer.body));
  } catch (const ApiError& e) {
    require(e.status == 400 && nlohmann::json::accept(error_answer(400, e.what()).body) &&
            nlohmann::json::accept(deepl_error(400, e.what()).body));
  }
}

// Each text with itself as its translation, beginning and end aligned, in every language.
std::vector<TranslatedText> echo(const TextQuery& query) {
  std::vector<TranslatedText> all;
  for (const std::string& text : query.texts) {
    require(!invalid_utf8_offset(text));
    const int64_t size = static_cast<int64_t>(text.size());
    all.push_back({text, {static_cast<size_t>(query.alternatives), text}, {{{0, size}, {0, size}}}, {}});
    if (query.source == "auto") all.back().detected = detect_languages(text, languages_of(kModels)).front();
  }
  return all;
}

// Fields sent as a multipart form come back as they are.
void check_multipart(const NamedValues& fields) {
  HttpRequest request;
  request.headers = {{"content-type", "multipart/form-data; boundary=\"b b\""}};
  for (const auto& [name, value] : fields) {
    if (("\r\n" + value).find("\r\n--b b") != std::string::npos) return;
    request.body += "--b b\r\nContent-Disposition: form-data; name=q\r\n\r\n" + value + "\r\n";
  }
  request.body += "--b b--";
  require(take_form(request, 1000).empty() && request.fields.size() == fields.size());
  for (size_t i = 0; i < fields.size(); ++i) require(request.fields[i].first == "q" && request.fields[i].second == fields[i].second);
}

}  // namespace

// The first byte chooses the content type.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const char* const types[] = {"application/json", "Application/JSON; charset=utf-8", "", "application/x-www-form-urlencoded",
                               "multipart/form-data; boundary=b"};
  HttpRequest request;
  request.method = "POST", request.headers = {{"content-type", types[data[0] % 5]}};
  request.body.assign(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::string wrong = take_form(request, 50);
  require(wrong.empty() || data[0] % 5 == 4);
  require(request.fields.size() <= 50);
  check_multipart(request.fields);

  refused_or([&] {
    const TextQuery query = parse_translate(request, {.characters = 100});
    require(!query.texts.empty() && (query.list || query.texts.size() == 1) && query.alternatives >= 0 && query.alternatives <= 10);
    return translate_answer(query, echo(query));
  });
  refused_or([&] {
    const TextQuery query = parse_deepl(request, kModels);
    require(!query.texts.empty() && query.list);
    return deepl_answer(query, echo(query));
  });
  refused_or([&] { return deepl_languages(RequestValues(request), kModels); });
  refused_or([&] {
    const std::string asked = parse_detect(RequestValues(request));
    require(!asked.empty() && !invalid_utf8_offset(asked));
    return detect_answer(detect_languages(asked, languages_of(kModels)));
  });
  return 0;
}
