// HTTP clients for tests: libcurl for what clients do, a bare socket for what they should not.
#pragma once

#include <curl/curl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "http/http.h"

namespace starling {

// What the servers of tests answer to requests that no handler sees.
inline HttpResponse plain_refusal(const HttpRequest&, int status, const std::string& why) { return {status, why, "text/plain", {}}; }

struct ClientAnswer {
  long status = 0;  // 0: no answer
  std::string body, type;
  std::vector<std::string> headers;
  nlohmann::json json() const { return nlohmann::json::parse(body, nullptr, false); }
  // Of a header line; "" without it.
  std::string header(std::string name) const {
    for (std::string line : headers) {
      const std::string low = line.substr(0, name.size());
      if (strncasecmp(low.c_str(), name.c_str(), name.size()) == 0 && line.size() > name.size() && line[name.size()] == ':')
        return line.substr(name.size() + 2, line.find_last_not_of("\r\n") - name.size() - 1);
    }
    return "";
  }
};

struct Ask {
  std::string method;  // "": GET, or POST with a body
  std::string body;
  std::vector<std::string> headers;
  std::vector<std::pair<std::string, std::string>> form = {};  // multipart
  long timeout_ms = 20000;
  std::string file_name = {}, file = {};  // of the form's field "file"
};

inline size_t take_bytes(char* data, size_t size, size_t count, void* to) {
  static_cast<std::string*>(to)->append(data, size * count);
  return size * count;
}
inline size_t take_line(char* data, size_t size, size_t count, void* to) {
  static_cast<std::vector<std::string>*>(to)->emplace_back(data, size * count);
  return size * count;
}

inline ClientAnswer ask(const std::string& url, const Ask& what = {}) {
  ClientAnswer answer;
  CURL* curl = curl_easy_init();
  curl_easy_setopt(curl, CURLOPT_URL, url.c_str());
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl, CURLOPT_PROXY, "");
  curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, what.timeout_ms);
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take_bytes);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, &answer.body);
  curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, take_line);
  curl_easy_setopt(curl, CURLOPT_HEADERDATA, &answer.headers);
  curl_slist* headers = nullptr;
  for (const std::string& h : what.headers) headers = curl_slist_append(headers, h.c_str());
  curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
  curl_mime* mime = nullptr;
  if (!what.form.empty()) {
    mime = curl_mime_init(curl);
    for (const auto& [name, value] : what.form) {
      curl_mimepart* part = curl_mime_addpart(mime);
      curl_mime_name(part, name.c_str());
      curl_mime_data(part, value.data(), value.size());
    }
    if (!what.file_name.empty()) {
      curl_mimepart* part = curl_mime_addpart(mime);
      curl_mime_name(part, "file");
      curl_mime_filename(part, what.file_name.c_str());
      curl_mime_data(part, what.file.data(), what.file.size());
    }
    curl_easy_setopt(curl, CURLOPT_MIMEPOST, mime);
  } else if (!what.body.empty()) {
    curl_easy_setopt(curl, CURLOPT_POSTFIELDS, what.body.data());
    curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(what.body.size()));
  }
  if (!what.method.empty()) curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, what.method.c_str());
  if (what.method == "HEAD") curl_easy_setopt(curl, CURLOPT_NOBODY, 1L);
  if (curl_easy_perform(curl) == CURLE_OK || !answer.headers.empty()) curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &answer.status);
  char* type = nullptr;
  if (curl_easy_getinfo(curl, CURLINFO_CONTENT_TYPE, &type) == CURLE_OK && type) answer.type = type;
  curl_mime_free(mime);
  curl_slist_free_all(headers);
  curl_easy_cleanup(curl);
  return answer;
}

inline ClientAnswer ask_json(const std::string& url, const nlohmann::json& body) {
  return ask(url, {.body = body.dump(), .headers = {"Content-Type: application/json"}});
}

// A connection that sends what it is told.
class BareClient {
 public:
  explicit BareClient(int port) : fd_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET, address.sin_port = htons(static_cast<uint16_t>(port)), address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    const timeval patience{20, 0};
    setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  }
  ~BareClient() { hang_up(); }
  // False when the other side has closed.
  bool send(const std::string& bytes) {
    return ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size());
  }
  // What comes until the other side closes.
  std::string receive() {
    std::string all;
    char block[4096];
    for (ssize_t n; (n = recv(fd_, block, sizeof block, 0)) > 0;) all.append(block, static_cast<size_t>(n));
    return all;
  }
  // Reads until these bytes have come, after those of earlier calls; false if the other side closes before.
  bool receives(const std::string& bytes) {
    char block[4096];
    for (size_t at; (at = received_.find(bytes, looked_)) == std::string::npos;) {
      const ssize_t n = recv(fd_, block, sizeof block, 0);
      if (n <= 0) return false;
      received_.append(block, static_cast<size_t>(n));
    }
    looked_ = received_.find(bytes, looked_) + bytes.size();
    return true;
  }
  const std::string& received() const { return received_; }
  void hang_up() {
    if (fd_ >= 0) close(fd_);
    fd_ = -1;
  }

 private:
  int fd_;
  std::string received_;  // by receives()
  size_t looked_ = 0;     // bytes of it
};

}  // namespace starling
