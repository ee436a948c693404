// A headless Chromium that tests drive: its DevTools protocol over a pair of pipes, one JSON object a message.
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>

#include "base/error.h"

namespace starling::test {

class Browser {
 public:
  using Json = nlohmann::json;

  static std::string program() {
    for (const char* path : {"/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"})
      if (::access(path, X_OK) == 0) return path;
    return "";
  }

  Browser() {
    char name[] = "/tmp/starling_browser_XXXXXX";
    CHECK(mkdtemp(name) != nullptr, "no temporary directory");
    profile_ = name;
    int to[2], from[2];
    CHECK(pipe2(to, O_CLOEXEC) == 0 && pipe2(from, O_CLOEXEC) == 0, "no pipes");
    const std::string path = program(), profile = "--user-data-dir=" + profile_;
    child_ = fork();
    if (child_ == 0) {
      setpgid(0, 0);
      // Numbers that neither end of the pipes has.
      const int in = fcntl(to[0], F_DUPFD, 50), out = fcntl(from[1], F_DUPFD, 50), quiet = open("/dev/null", O_RDWR);
      dup2(in, 3), dup2(out, 4), dup2(quiet, 0), dup2(quiet, 1), dup2(quiet, 2);
      execl(path.c_str(), path.c_str(), "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--remote-debugging-pipe",
            "--no-first-run", "--disable-extensions", "--disable-background-networking", profile.c_str(), "about:blank", nullptr);
      _exit(127);
    }
    close(to[0]), close(from[1]);
    to_ = to[1], from_ = from[0];
    const std::string target = call("Target.createTarget", {{"url", "about:blank"}})["targetId"];
    session_ = call("Target.attachToTarget", {{"targetId", target}, {"flatten", true}})["sessionId"];
  }
  ~Browser() {
    kill(-child_, SIGKILL);
    waitpid(child_, nullptr, 0);
    close(to_), close(from_);
    std::error_code ignored;
    std::filesystem::remove_all(profile_, ignored);
  }
  Browser(const Browser&) = delete;
  Browser& operator=(const Browser&) = delete;

  // The result of a method of the protocol; InternalError if there is an error, or nothing within a minute.
  Json call(const std::string& method, const Json& parameters = Json::object()) {
    Json message{{"id", ++id_}, {"method", method}, {"params", parameters}};
    if (!session_.empty()) message["sessionId"] = session_;
    const std::string text = message.dump();
    CHECK(write(to_, text.c_str(), text.size() + 1) == static_cast<ssize_t>(text.size()) + 1, "the browser has gone");
    while (true) {
      const Json answer = Json::parse(next());
      if (answer.value("id", 0) != id_) continue;
      CHECK(!answer.contains("error"), "{}: {}", method, answer.dump());
      return answer["result"];
    }
  }

  // The value of an expression on the page; a promise's is waited for.
  Json value(const std::string& expression) {
    const Json result = call("Runtime.evaluate", {{"expression", expression}, {"returnByValue", true}, {"awaitPromise", true}});
    CHECK(!result.contains("exceptionDetails"), "{}: {}", expression, result.dump());
    return result["result"].value("value", Json());
  }
  // Whether an expression becomes true within half a minute.
  bool becomes_true(const std::string& expression) {
    for (int i = 0; i < 300; ++i) {
      if (value("!!(" + expression + ")") == true) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
    return false;
  }

  void press(const std::string& key) {
    for (const char* type : {"keyDown", "keyUp"}) call("Input.dispatchKeyEvent", {{"type", type}, {"key", key}, {"code", key}});
  }
  void type(const std::string& text) { call("Input.insertText", {{"text", text}}); }
  // Moves the pointer onto an element.
  void hover(const std::string& element) {
    const Json at =
        value("(() => { const r = " + element + ".getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]; })()");
    call("Input.dispatchMouseEvent", {{"type", "mouseMoved"}, {"x", at[0]}, {"y", at[1]}});
  }

 private:
  std::string next() {
    for (size_t end; (end = received_.find('\0')) == std::string::npos;) {
      pollfd ready{from_, POLLIN, 0};
      CHECK(poll(&ready, 1, 60000) == 1, "the browser does not answer");
      char block[65536];
      const ssize_t got = read(from_, block, sizeof block);
      CHECK(got > 0, "the browser has ended");
      received_.append(block, static_cast<size_t>(got));
    }
    const std::string message = received_.substr(0, received_.find('\0'));
    received_.erase(0, message.size() + 1);
    return message;
  }

  std::string profile_, session_, received_;
  pid_t child_ = -1;
  int to_ = -1, from_ = -1, id_ = 0;
};

}  // namespace starling::test
