// Files: LibreTranslate's two calls and DeepL's three steps, over sockets, with a model; limits, keys, what is refused, what is forgotten.
#include <thread>

#include "formats/office.h"
#include "tests/formats/office_files.h"
#include "tests/serve/service_fixture.h"

namespace starling {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::MatchesRegex;

const std::string kBody = "<w:p><w:r><w:t>A dog runs.</w:t></w:r></w:p>";

class FilesTest : public ServiceTest {
 protected:
  ClientAnswer send(const std::string& name, const std::string& bytes, const std::string& source = "en") const {
    return ask(url("/translate_file"), {.form = {{"source", source}, {"target", "de"}}, .file_name = name, .file = bytes});
  }
  // The path of the address in an answer.
  static std::string path_of(const ClientAnswer& answer) {
    const std::string address = answer.json().value("translatedFileUrl", "");
    return address.substr(std::min(address.find("/download_file/"), address.size()));
  }
  ClientAnswer upload(const std::string& name, const std::string& bytes, Ask ask_what = {}) const {
    ask_what.form.emplace_back("target_lang", "DE");
    ask_what.file_name = name, ask_what.file = bytes;
    return ask(url("/v2/document"), ask_what);
  }
  // Asks until the document is translated or refused.
  Json wait_for(const std::string& id, const Json& key) const {
    for (;;) {
      const Json state = ask_json(url("/v2/document/" + id), key).json();
      if (state.value("status", "") != "queued" && state.value("status", "") != "translating") return state;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }
};

TEST_F(FilesTest, LibreTranslatesClientGetsADocumentBack) {
  start();
  const Json settings = ask(url("/frontend/settings")).json();
  EXPECT_EQ(settings["filesTranslation"], true);
  for (const char* ending : {".txt", ".html", ".srt", ".docx", ".odt", ".pptx", ".epub"})
    EXPECT_TRUE(std::ranges::count(settings["supportedFilesFormat"], ending)) << ending;
  const ClientAnswer answer = send("my letter.docx", docx_of(kBody));
  ASSERT_EQ(answer.status, 200) << answer.body;
  EXPECT_THAT(answer.json()["translatedFileUrl"].get<std::string>(),
              MatchesRegex("http://127\\.0\\.0\\.1:[0-9]+/download_file/[0-9a-f]{32}\\.my_letter\\.docx"));
  const ClientAnswer file = ask(url(path_of(answer)));
  ASSERT_EQ(file.status, 200);
  EXPECT_EQ(file.type, "application/octet-stream");
  EXPECT_EQ(file.header("Content-Disposition"), "attachment; filename=\"my_letter_de.docx\"; filename*=UTF-8''my%20letter_de.docx");
  EXPECT_EQ(file.header("X-Content-Type-Options"), "nosniff");
  const std::string expected_text = expected({"A dog runs."}).front().front();
  EXPECT_EQ(file.body, docx_of("<w:p><w:r><w:t>" + expected_text + "</w:t></w:r></w:p>"));
  EXPECT_EQ(ask(url(path_of(answer))).body, file.body);  // it may be fetched again
  EXPECT_THAT(log_text(), HasSubstr("\"path\":\"/translate_file\",\"status\":200"));
  EXPECT_THAT(log_text(), HasSubstr("\"sentences\":1,\"characters\":"));
}

TEST_F(FilesTest, EachFormatOfOneTextAndOfMany) {
  start();
  const std::string dog = expected({"A dog runs."}).front().front();
  const auto translated_file = [&](const std::string& name, const std::string& bytes) { return ask(url(path_of(send(name, bytes)))).body; };
  EXPECT_EQ(translated_file("a.txt",
                            "\xEF\xBB\xBF"
                            "A dog runs.\n12:30\n"),
            "\xEF\xBB\xBF" + dog + "\n12:30\n");
  EXPECT_EQ(translated_file("a.html", "<html><p>A dog runs.</p></html>"), "<html><p>" + dog + "</p></html>");
  EXPECT_EQ(translated_file("a.srt", "1\n00:00:01,000 --> 00:00:02,000\nA dog runs.\n"), "1\n00:00:01,000 --> 00:00:02,000\n" + dog + "\n");
  EXPECT_EQ(translated_file("a.odt", open_document("text", "<text:p>A dog runs.</text:p>")),
            open_document("text", "<text:p>" + dog + "</text:p>"));
  std::string lines, answers;
  for (int i = 0; i < 3000; ++i) lines += "A dog runs.\n", answers += dog + "\n";  // more than go into the queues at once
  EXPECT_EQ(translated_file("a.txt", lines), answers);
}

TEST_F(FilesTest, TheLanguageIsDetectedOnceForAFile) {
  start();
  const std::string text = "A dog runs through the snow with a red ball. The people who live in this house are watching it.";
  EXPECT_EQ(send("a.txt", text, "auto").status, 200);
  const ClientAnswer german = send("a.txt", "Ein Hund läuft mit einem roten Ball durch den Schnee, und die Leute sehen ihm zu.", "auto");
  EXPECT_EQ(ask(url(path_of(german))).body, "Ein Hund läuft mit einem roten Ball durch den Schnee, und die Leute sehen ihm zu.");
}

TEST_F(FilesTest, WhatLibreTranslateRefuses) {
  start({.files = {.bytes = 50'000}});
  const auto why = [](const ClientAnswer& a) { return std::to_string(a.status) + " " + a.json().value("error", ""); };
  EXPECT_EQ(ask(url("/translate_file")).status, 405);
  EXPECT_EQ(ask(url("/download_file/x"), {.method = "POST", .body = "x"}).status, 405);
  EXPECT_EQ(ask(url("/download_file/x.docx")).status, 404);
  EXPECT_EQ(ask(url("/suggest")).status, 405);
  EXPECT_THAT(why(ask(url("/translate_file"), {.form = {{"source", "en"}, {"target", "de"}}})),
              HasSubstr("400 Invalid request: missing file"));
  EXPECT_THAT(why(ask(url("/translate_file"), {.form = {{"target", "de"}}, .file_name = "a.txt", .file = "x"})),
              HasSubstr("400 Invalid request: missing source parameter"));
  EXPECT_THAT(why(send("a.txt", "text", "xx")), HasSubstr("400 "));
  EXPECT_THAT(why(send("a.zip", zip_of({{"a", "b"}}))), HasSubstr("400 a.zip: an archive, but not a docx"));
  EXPECT_THAT(why(send("a.tex", "\\documentclass")), HasSubstr("400 a.tex: LaTeX format is not supported yet"));
  EXPECT_THAT(why(send("a.txt", "\xff\xfe")), HasSubstr("400 line 1: a byte does not belong to UTF-8"));
  EXPECT_THAT(why(send("a.docx", docx_of("<w:p>"))), HasSubstr("400 word/document.xml: </w:body> has no opening tag"));
  EXPECT_EQ(send("a.txt", std::string(60'000, 'x')).status, 413);
  EXPECT_THAT(why(send("a.docx", docx_of("<w:p>" + std::string(600'000, ' ') + "</w:p>"))), HasSubstr("400 the document has more than"));
}

TEST_F(FilesTest, AServerWithoutFiles) {
  start({.files = {.bytes = 0}});
  EXPECT_EQ(ask(url("/frontend/settings")).json()["filesTranslation"], false);
  EXPECT_EQ(send("a.txt", "text").status, 403);
  EXPECT_EQ(upload("a.txt", "text").status, 403);
}

TEST_F(FilesTest, DeepLsThreeSteps) {
  start();
  const ClientAnswer begun =
      upload("letter.docx", docx_of(kBody), {.headers = {"Authorization: DeepL-Auth-Key x"}, .form = {{"source_lang", "EN"}}});
  ASSERT_EQ(begun.status, 200) << begun.body;
  const std::string id = begun.json()["document_id"];
  EXPECT_THAT(id, MatchesRegex("[0-9a-f]{32}"));
  const Json key = {{"document_key", begun.json()["document_key"]}};
  const Json state = wait_for(id, key);
  EXPECT_EQ(state["document_id"], id);
  EXPECT_EQ(state["status"], "done");
  EXPECT_GE(state["billed_characters"], 11);
  EXPECT_EQ(ask(url("/v2/document/" + id + "?document_key=" + key["document_key"].get<std::string>())).json()["status"], "done");
  EXPECT_EQ(ask_json(url("/v2/document/" + id), {{"document_key", "wrong"}}).status, 404);
  EXPECT_EQ(ask_json(url("/v2/document/" + id + "/result"), {{"document_key", "wrong"}}).status, 404);
  EXPECT_EQ(ask_json(url("/v2/document/x"), key).status, 404);
  const std::string result = "/v2/document/" + id + "/result?document_key=" + key["document_key"].get<std::string>();
  EXPECT_EQ(ask(url(result), {.method = "HEAD"}).status, 200);  // which does not fetch it
  const ClientAnswer file = ask_json(url("/v2/document/" + id + "/result"), key);
  ASSERT_EQ(file.status, 200);
  EXPECT_EQ(file.body, docx_of("<w:p><w:r><w:t>" + expected({"A dog runs."}).front().front() + "</w:t></w:r></w:p>"));
  EXPECT_EQ(ask_json(url("/v2/document/" + id + "/result"), key).status, 404);  // it can be fetched once
  EXPECT_GE(ask(url("/v2/usage")).json()["character_count"], 11);
}

TEST_F(FilesTest, WaitForNobodyWhenTheServerStops) {
  start();
  const ClientAnswer begun = upload("letter.docx", docx_of(kBody), {.form = {{"source_lang", "EN"}}});
  const Json key = {{"document_key", begun.json()["document_key"]}};
  service_->drain();
  EXPECT_EQ(send("letter.docx", docx_of(kBody)).status, 503);
  const std::string state = wait_for(begun.json()["document_id"], key)["status"];
  EXPECT_TRUE(state == "done" || state == "error") << state;
}

TEST_F(FilesTest, HaveTheTermsOfAGlossary) {
  start();
  const std::string id =
      ask_json(url("/v2/glossaries"), {{"name", "g"}, {"source_lang", "en"}, {"target_lang", "de"}, {"entries", "dog\tWasserhund"}})
          .json()["glossary_id"];
  const ClientAnswer begun = upload("letter.docx", docx_of(kBody), {.form = {{"source_lang", "EN"}, {"glossary_id", id}}});
  ASSERT_EQ(begun.status, 200) << begun.body;
  const Json key = {{"document_key", begun.json()["document_key"]}};
  wait_for(begun.json()["document_id"], key);
  const ClientAnswer file = ask_json(url("/v2/document/" + begun.json()["document_id"].get<std::string>() + "/result"), key);
  EXPECT_THAT(entry_of(file.body, "word/document.xml"), HasSubstr("Wasserhund"));
  EXPECT_EQ(upload("a.txt", "x", {.form = {{"source_lang", "EN"}, {"glossary_id", "none"}}}).status, 404);
  const ClientAnswer sent =
      ask(url("/translate_file"),
          {.form = {{"source", "en"}, {"target", "de"}, {"glossary", "dog\tWasserhund"}}, .file_name = "a.txt", .file = "A dog runs."});
  EXPECT_THAT(ask(url(path_of(sent))).body, HasSubstr("Wasserhund"));
}

TEST_F(FilesTest, WhatDeepLRefuses) {
  start();
  const auto why = [](const ClientAnswer& a) { return std::to_string(a.status) + " " + a.json().value("message", ""); };
  EXPECT_EQ(ask(url("/v2/document")).status, 405);
  EXPECT_THAT(why(upload("a.zip", zip_of({{"a", "b"}}))), HasSubstr("400 a.zip: an archive"));
  EXPECT_THAT(why(upload("a.txt", "x", {.form = {{"formality", "more"}}})), HasSubstr("400 'formality' more is not supported"));
  EXPECT_THAT(why(upload("a.txt", "x", {.form = {{"output_format", "pdf"}}})), HasSubstr("400 Value for 'output_format' not supported"));
  EXPECT_THAT(why(upload("a.txt", "x", {.form = {{"formalty", "x"}}})), HasSubstr("did you mean 'formality'"));
  EXPECT_THAT(why(ask(url("/v2/document"), {.form = {{"target_lang", "DE"}}})), HasSubstr("400 Parameter 'file' not specified"));
  EXPECT_THAT(why(ask(url("/v2/document"), {.form = {{"target_lang", "XX"}}, .file_name = "a.txt", .file = "x"})),
              HasSubstr("400 Value for 'target_lang' not supported: XX"));
  const ClientAnswer broken = upload("a.docx", docx_of("<w:p>"), {.form = {{"source_lang", "EN"}}});
  ASSERT_EQ(broken.status, 200);
  const Json state = wait_for(broken.json()["document_id"], {{"document_key", broken.json()["document_key"]}});
  EXPECT_EQ(state["status"], "error");
  EXPECT_THAT(state["message"].get<std::string>(), HasSubstr("has no opening tag"));
}

TEST_F(FilesTest, FilesAreForgottenAndTooManyAreRefused) {
  start();
  const std::string path = path_of(send("a.txt", "A dog runs."));
  service_->expire(serve_seconds() + 500);
  EXPECT_EQ(ask(url(path)).status, 200);
  service_->expire(serve_seconds() + 700);
  EXPECT_EQ(ask(url(path)).status, 404);
  FileJobs jobs(*models_, {}, {.bytes = 100});
  int refused = 0;
  std::vector<std::string> names;
  for (int i = 0; i < 30; ++i) try {
      names.push_back(
          jobs.start({"a.txt", std::string(100, '1'), "en", "de"}, std::make_shared<JobSize>(), [](const auto&, const auto&) {}));
    } catch (const ApiError& e) {
      EXPECT_EQ(e.status, 429);
      ++refused;
    }
  EXPECT_EQ(refused, 14);
  jobs.cancel(names.front());
  EXPECT_FALSE(jobs.status(names.front()));
  jobs.stop();
  EXPECT_THROW(jobs.start({"a.txt", "1", "en", "de"}, std::make_shared<JobSize>(), [](const auto&, const auto&) {}), ApiError);
}

TEST_F(FilesTest, KeysAreAskedForFilesToo) {
  start();
  service_->set_keys(ApiKeys::parse("anna " + std::string(64, '0'), "keys"));
  EXPECT_EQ(send("a.txt", "A dog runs.").status, 403);
  EXPECT_EQ(upload("a.txt", "A dog runs.").status, 403);
}

TEST_F(FilesTest, DescriptionsAreWhereClientsLookForThem) {
  start();
  EXPECT_EQ(ask(url("/spec")).body, ask(url("/openapi.json")).body);
  const Json paths = ask(url("/spec")).json()["paths"];
  for (const char* path : {"/translate_file", "/download_file/{name}", "/v2/document", "/v2/document/{id}", "/v2/document/{id}/result"})
    EXPECT_TRUE(paths.contains(path)) << path;
  EXPECT_THAT(ask(url("/docs")).body, HasSubstr("What this server answers"));
  EXPECT_EQ(ask(url("/docs")).type, "text/html; charset=utf-8");
}

}  // namespace
}  // namespace starling
