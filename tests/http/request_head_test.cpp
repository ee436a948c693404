// Requests that two programs could read in two ways (RFC 9112, sections 3, 5, 6, 7 and 11.2), over real sockets: each is answered once,
// with status 400, its connection is closed, and what follows on it is never taken for a request.
#include "http/request_head.h"

#include <gmock/gmock.h>

#include <atomic>

#include "http/http.h"
#include "tests/serve/client.h"

namespace starling {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

// The end of the head, and a second request behind what a server may take for the first one's body.
const std::string kSecond = "GET /second HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
const std::string kPost = "POST /translate HTTP/1.1\r\n", kHost = "Host: a\r\n", kJson = "Content-Type: application/json\r\n";

size_t count_of(const std::string& text, const std::string& what) {
  size_t n = 0;
  for (size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += what.size()) ++n;
  return n;
}

class RequestHeadTest : public testing::Test {
 protected:
  RequestHeadTest()
      : server_(
            "127.0.0.1:0", {.body_bytes = 100000},
            [this](std::shared_ptr<const HttpRequest> r, HttpServer::Reply reply) -> HttpServer::Cancel {
              ++handled_;
              reply({200, r->path + " " + r->body, "text/plain", {}});
              return nullptr;
            },
            [](const HttpRequest&, int status, const std::string& why) {
              return HttpResponse{status, why, "text/plain", {}};
            }) {}
  // All that comes back until the connection is closed.
  std::string answers(const std::string& bytes) {
    BareClient client(server_.port());
    client.send(bytes);
    return client.receive();
  }
  void expect_refused(const std::string& bytes) {
    handled_ = 0;
    std::string all = answers(bytes);
    // libmicrohttpd 0.9 refuses lengths that are none itself, and sends the head of its answer twice.
    if (const size_t size = all.find("\r\n\r\n") + 4; all.substr(size, size) == all.substr(0, size)) all.erase(0, size);
    EXPECT_THAT(all, StartsWith("HTTP/1.1 400 ")) << bytes;
    EXPECT_THAT(all, HasSubstr("\r\nConnection: close\r\n")) << bytes;
    EXPECT_EQ(count_of(all, "HTTP/1.1 "), 1u) << bytes << all;
    EXPECT_EQ(handled_, 0) << bytes;
  }
  void expect_refused(const std::string& bytes, const std::string& why) {
    expect_refused(bytes);
    EXPECT_THAT(answers(bytes), EndsWith("\r\n\r\n" + why)) << bytes;
  }

  std::atomic<int> handled_{0};
  HttpServer server_;
};

TEST_F(RequestHeadTest, RefusesLengthsThatCanBeReadInTwoWays) {
  const std::string both = "there are both Transfer-Encoding and Content-Length; send one of them";
  expect_refused(kPost + kHost + kJson + "Content-Length: 65\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + kSecond, both);
  expect_refused(kPost + kHost + "Transfer-Encoding: chunked\r\nContent-Length: 4\r\n" + kJson + "\r\n2\r\n{}\r\n0\r\n\r\n" + kSecond,
                 both);
  expect_refused("GET / HTTP/1.1\r\n" + kHost + "Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n" + kSecond, both);
  const std::string two = "there are 2 Content-Length headers; send one";
  expect_refused(kPost + kHost + kJson + "Content-Length: 2\r\nContent-Length: 50\r\n\r\n{}" + kSecond, two);
  expect_refused(kPost + kHost + kJson + "Content-Length: 2\r\ncontent-length: 2\r\n\r\n{}" + kSecond, two);
  expect_refused(kPost + kHost + kJson + "Content-Length: 0\r\nContent-Length: 50\r\n\r\n" + kSecond, two);
  for (const std::string length : {"2, 2", "+2", "-2", "0x2", "2 ", "2\t", "", "2;", "two", "1e1", "٢"})
    expect_refused(kPost + kHost + kJson + "Content-Length: " + length + "\r\n\r\n{}" + kSecond);
  const std::string endless = answers(kPost + kHost + "Content-Length: 99999999999999999999999999\r\n\r\n{}" + kSecond);
  EXPECT_THAT(endless, StartsWith("HTTP/1.1 413 "));
  EXPECT_THAT(endless, Not(HasSubstr("HTTP/1.1 200 ")));
}

TEST_F(RequestHeadTest, RefusesTransferCodingsOtherThanChunked) {
  for (const std::string coding : {"xchunked", "identity", "gzip", "gzip, chunked", "chunked, chunked", "chunked ", "chunked\t",
                                   "\"chunked\"", "chunked;q=1", "", "chun ked",
                                   "\x0B"
                                   "chunked"})
    expect_refused(kPost + kHost + kJson + "Transfer-Encoding: " + coding + "\r\n\r\n0\r\n\r\n" + kSecond);
  expect_refused(kPost + kHost + kJson + "Transfer-Encoding: xchunked\r\nContent-Length: 2\r\n\r\n{}" + kSecond,
                 "the Transfer-Encoding 'xchunked' is not supported; send chunked");
  expect_refused(kPost + kHost + "Transfer-Encoding:\tchunked\r\nContent-Length: 2\r\n\r\n0\r\n\r\n" + kSecond);
  expect_refused(kPost + kHost + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + kSecond,
                 "there are 2 Transfer-Encoding headers; send one");
  expect_refused("POST / HTTP/1.0\r\n" + kHost + "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + kSecond,
                 "HTTP/1.0 has no Transfer-Encoding; send Content-Length");
}

TEST_F(RequestHeadTest, RefusesNamesAndValuesThatAreNone) {
  expect_refused(kPost + kHost + "Content-Length : 2\r\n" + kJson + "\r\n{}" + kSecond,
                 "the header name 'Content-Length ' is not an HTTP token; leave out blanks and other characters");
  for (const std::string name : {"Content-Length\t", "Content Length", " Content-Length", "Content-Length\r", "Content\x01Length", "X\"Y",
                                 "Ä", "", "Content-Length\x0B", "(x)", "X,Y"})
    expect_refused(kPost + kHost + name + ": 2\r\n" + kJson + "\r\n{}" + kSecond);
  for (const std::string value : {"a\rb", "a\x01", "\x7F", "a\rContent-Length: 2"})
    expect_refused(kPost + kHost + "X: " + value + "\r\nContent-Length: 2\r\n\r\n{}" + kSecond,
                   "the value of X has control characters; leave them out");
  expect_refused(kPost + kHost + "no colon\r\n\r\n" + kSecond);
}

TEST_F(RequestHeadTest, RefusesLinesThatDoNotEndWithCrAndLf) {
  const std::string why =
      "a line of the request does not end with CR and LF, is continued on the next one, or has a NUL; send each header as one such line";
  const std::string nul(1, '\0');
  const std::string end = "\r\n\r\n{}" + kSecond, length = "Content-Length: 2";
  expect_refused(kPost + "Host: a\n" + length + end, why);
  expect_refused("POST / HTTP/1.1\n" + kHost + length + end, why);
  expect_refused(kPost + kHost + length + "\n\n{}" + kSecond, why);
  expect_refused(kPost + kHost + length + "\r\n\n{}" + kSecond, why);
  expect_refused(kPost + kHost + "X: a\n" + length + end, why);
  // Continued lines, which were once allowed.
  expect_refused(kPost + kHost + length + "\r\n 0" + end, why);
  expect_refused(kPost + kHost + "X: a\r\n\t" + length + end);
  expect_refused(kPost + kHost + "Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n" + kSecond);
  expect_refused(kPost + " " + kHost + length + end);
  // What stands behind a NUL is not seen by whoever takes it for the end.
  expect_refused(kPost + kHost + "X: a" + nul + "b\r\n" + length + end, why);
  expect_refused(kPost + kHost + length + nul + "0" + end, why);
  expect_refused(kPost + kHost + "Content-Length" + nul + ": 2" + end);
  expect_refused("GET /metrics" + nul + "x HTTP/1.1\r\n" + kHost + "\r\n" + kSecond);
}

TEST_F(RequestHeadTest, RefusesRequestLinesThatAreNone) {
  const std::string rest = "\r\n" + kHost + "\r\n" + kSecond;
  expect_refused("GET /metrics%00x HTTP/1.1" + rest, "the request's path has a NUL (%00); leave it out");
  expect_refused("GET /%00 HTTP/1.1" + rest, "the request's path has a NUL (%00); leave it out");
  for (const std::string line :
       {"GET  / HTTP/1.1", "GET /a b HTTP/1.1", "GET / HTTP/1.1 ", "GET /\tx HTTP/1.1", "GET\t/ HTTP/1.1 x", "G(T / HTTP/1.1",
        "GET /\x01 HTTP/1.1", "GET / http/1.1", "GET / HTTP/1.1x", "GET / HTTP/1.10", "GET / XTTP/1.1"})
    expect_refused(line + rest);
  // Other versions are said to be such, and nothing follows either.
  for (const std::string line : {"GET / HTTP/2.0", "GET / HTTP/0.9"}) {
    const std::string all = answers(line + rest);
    EXPECT_THAT(all, StartsWith("HTTP/1.1 505 ")) << line;
    EXPECT_EQ(count_of(all, "HTTP/1.1 "), 1u) << line;
  }
}

TEST_F(RequestHeadTest, RefusesHostsThatCanBeReadInTwoWays) {
  expect_refused("GET / HTTP/1.1\r\nX: a\r\n\r\n" + kSecond);
  expect_refused("GET / HTTP/1.1\r\n" + kHost + "Host: b\r\n\r\n" + kSecond, "there are 2 Host headers; send one");
  for (const std::string host : {"a b", "a, b", "a/b", "a@b", "a\\b"})
    expect_refused("GET / HTTP/1.1\r\nHost: " + host + "\r\n\r\n" + kSecond, "'" + host + "' is not a valid host; send Host: NAME:PORT");
}

// What is not clear to every program about chunks does no harm: nothing that follows them is read.
TEST_F(RequestHeadTest, ClosesConnectionsBehindChunks) {
  const std::string head = kPost + kHost + kJson + "Transfer-Encoding: chunked\r\n\r\n";
  for (const std::string body : {"2\r\n{}\r\n0\r\n\r\n", "2;a=b\r\n{}\r\n0\r\n\r\n", "2\n{}\n0\n\n", "02\r\n{}\r\n0\r\nX: y\r\n\r\n",
                                 "2;\n{}\r\n0\r\n\r\n", "2\r\n{}\r\n0;\"\r\n\r\n\"\r\n\r\n"}) {
    const std::string all = answers(head + body + kSecond);
    EXPECT_THAT(all, StartsWith("HTTP/1.1 200 ")) << body;
    EXPECT_THAT(all, HasSubstr("Connection: close\r\n")) << body;
    EXPECT_THAT(all, EndsWith("/translate {}")) << body;
    EXPECT_EQ(count_of(all, "HTTP/1.1 "), 1u) << body << all;
  }
  for (const std::string body :
       {"zz\r\n\r\n", "2 \r\n{}\r\n0\r\n\r\n", "0x2\r\n{}\r\n0\r\n\r\n", "+2\r\n{}\r\n0\r\n\r\n", "-1\r\n{}\r\n0\r\n\r\n",
        "\r\n{}\r\n0\r\n\r\n", ";\r\n{}\r\n0\r\n\r\n", "2\r\n{}x\r\n0\r\n\r\n", "2\r\n{}0\r\n\r\n", "fffffffffffffffff\r\n{}\r\n0\r\n\r\n"})
    if (const std::string all = answers(head + body + kSecond); !all.starts_with("HTTP/1.1 413 ")) expect_refused(head + body + kSecond);
}

TEST_F(RequestHeadTest, TakesWhatIsClear) {
  const std::string close = "Connection: close\r\n";
  for (const std::string& bytes : std::vector<std::string>{
           kPost + kHost + close + "Content-Length: 2\r\n\r\n{}", kPost + kHost + close + "Content-Length:2\r\n\r\n{}",
           kPost + kHost + close + "Content-Length:\t 2\r\n\r\n{}", kPost + "host: a:5000\r\n" + close + "content-length: 02\r\n\r\n{}",
           kPost + "Host: [::1]:5000\r\nX-Empty:\r\nX: ä \"(b)\" , \t c  \r\n" + close + "Content-Length: 2\r\n\r\n{}",
           kPost + "Host:\r\n" + close + "Content-Length: 2\r\nCookie: a=b; c=\"d\"\r\n\r\n{}",
           "POST /translate HTTP/1.0\r\nContent-Length: 2\r\n\r\n{}", "\r\n" + kPost + kHost + close + "Content-Length: 2\r\n\r\n{}",
           "POST /tr%61nslate?q=a%00b&x=%C3%A4&y=a+b HTTP/1.1\r\n" + kHost + close + "Content-Length: 2\r\n\r\n{}",
           "POST /translate?q=ä HTTP/1.1\r\n" + kHost + close + "Content-Length: 2\r\n\r\n{}"}) {
    const std::string all = answers(bytes);
    EXPECT_THAT(all, StartsWith("HTTP/1.1 200 ")) << bytes;
    EXPECT_THAT(all, EndsWith("\r\n\r\n/translate {}")) << bytes;
  }
}

// However the bytes come: the library moves what it has read.
TEST_F(RequestHeadTest, TakesLongHeadsInPiecesOneAfterTheOther) {
  for (const size_t piece : {1u, 7u, 1000u, 100000u}) {
    BareClient client(server_.port());
    std::string all, expected;
    for (int i = 0; i < 6; ++i) {
      std::string head = "POST /" + std::to_string(i) + "?x=" + std::string(static_cast<size_t>(100 * i), 'y') + " HTTP/1.1\r\n" + kHost;
      const int fields = piece == 1 ? 20 : 150;
      for (int k = 0; k < fields; ++k) head += "X-" + std::to_string(k) + ": " + std::string(static_cast<size_t>(k), 'v') + "\r\n";
      if (i == 5) head += "Connection: close\r\n";
      all += head + "Content-Length: 5\r\n\r\nhello";
    }
    for (size_t at = 0; at < all.size(); at += piece) ASSERT_TRUE(client.send(all.substr(at, piece)));
    const std::string got = client.receive();
    EXPECT_EQ(count_of(got, "HTTP/1.1 200 "), 6u) << piece << got.substr(0, 500);
    EXPECT_THAT(got, EndsWith("/5 hello"));
  }
}

}  // namespace
}  // namespace starling
