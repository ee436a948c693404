// Clients that are broken, slow, gone or hostile. Each function is one of their deeds and gives what came of it, for the counts.
#pragma once

#include "good.h"

namespace soak {

inline std::string outcome(const Answer& a) { return a.status ? std::to_string(a.status) : "cut"; }

inline std::string noise(Random& random, size_t size) {
  std::string all(size, ' ');
  for (char& c : all) c = static_cast<char>(random());
  return all;
}

// Goes away in the middle of a request, or while it waits for the answer.
inline std::string gone(int port, Random& random, const GoodRequests& good) {
  Client client(port);
  const std::string bytes = good.make(random).bytes;
  if (below(random, 2) == 0) {
    client.send(std::string_view(bytes).substr(0, below(random, bytes.size())));
  } else {
    client.send(bytes);
    usleep(static_cast<useconds_t>(below(random, 30000)));
  }
  client.hang_up(below(random, 2) == 0);
  return "left";
}

// 100 MB, told before, or in chunks, or not all there.
inline std::string large_body(int port, Random& random) {
  Client client(port);
  const size_t size = 100 << 20, kind = below(random, 3);
  const char* const types[] = {"application/json", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "text/plain"};
  client.send("POST /translate HTTP/1.1\r\nHost: x\r\nContent-Type: " + std::string(types[below(random, 4)]) + "\r\n" +
              (kind == 0 ? "Transfer-Encoding: chunked\r\n\r\n" : "Content-Length: " + std::to_string(size) + "\r\n\r\n"));
  std::string piece(1 << 20, 'x');
  if (kind == 0) piece = "100000\r\n" + piece + "\r\n";
  for (size_t sent = 0; sent < size && client.send(piece); sent += 1 << 20)
    if (client.ended()) break;
  return outcome(client.receive());
}

// Just what may be sent, of what is worst to take apart.
inline std::string awkward_body(int port, Random& random) {
  static const char* const units[] = {"<",    "<b",           "&",  "{",        "x",   "\"", "(", "a.", "https://", "@", "%s",
                                      "<!--", "\xE3\x80\x8C", "\n", "<i>a</i>", "&lt;"};
  Client client(port);
  std::string text;
  const std::string unit = units[below(random, std::size(units))];
  const size_t size = below(random, 4) == 0 ? 900 << 10 : 4000;
  while (text.size() < size) text += unit;
  Json body{{"q", text}, {"source", below(random, 2) ? "en" : "auto"}, {"target", "de"}, {"format", below(random, 2) ? "html" : "text"}};
  if (below(random, 3) == 0) body["alignment"] = true;
  client.send(request("POST", below(random, 4) ? "/translate" : "/detect", "application/json", body.dump()));
  // Translating it all is not worth the time: most go.
  if (below(random, 8) == 0) return outcome(client.receive());
  usleep(static_cast<useconds_t>(below(random, 2'000'000)));
  return "left";
}

// One "word" of a million letters.
inline std::string long_word(int port, Random& random) {
  Client client(port);
  static const char* const letters[] = {"a", "abcdefghij", "\xC3\xA4", "\xE6\x97\xA5", "\xF0\x9F\x98\x86"};
  const std::string unit = letters[below(random, std::size(letters))];
  std::string text;
  while (text.size() < 990'000) text += unit;
  Json body{{"q", text}, {"source", below(random, 2) ? "en" : "auto"}, {"target", "de"}};
  if (below(random, 3) == 0) body["alignment"] = true;
  client.send(request("POST", "/translate", "application/json", body.dump()));
  if (below(random, 4) == 0) return outcome(client.receive());
  usleep(static_cast<useconds_t>(below(random, 5'000'000)));
  return "left";
}

// A request whose length can be read in two ways, with another behind it, which must not be answered.
inline std::string smuggled(int port, Random& random) {
  static const char* const heads[] = {"Content-Length: 65\r\nTransfer-Encoding: chunked\r\n",
                                      "Content-Length: 2\r\nContent-Length: 50\r\n",
                                      "Transfer-Encoding: xchunked\r\nContent-Length: 2\r\n",
                                      "Transfer-Encoding:\tchunked \r\n",
                                      "Content-Length : 2\r\n",
                                      "Content-Length: 2\r\n 0\r\n",
                                      "X: a\nContent-Length: 2\r\n"};
  Client client(port);
  client.send("POST /translate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n" +
              std::string(heads[below(random, std::size(heads))]) + "\r\n0\r\n\r\nGET /health HTTP/1.1\r\nHost: x\r\n\r\n");
  const Answer first = client.receive();
  return client.receive().status != 0 || first.status == 200 ? "WRONG" : outcome(first);
}

// Many texts or fields of nothing.
inline std::string many_texts(int port, Random& random) {
  Client client(port);
  std::string body;
  if (below(random, 2) == 0) {
    body = "{\"source\":\"en\",\"target\":\"de\",\"q\":[\"\"";
    while (body.size() < 900'000) body += ",\"\"";
    client.send(request("POST", "/translate", "application/json", body + "]}"));
  } else {
    while (body.size() < 900'000) body += "q&text=&";
    client.send(
        request("POST", below(random, 2) ? "/v2/translate" : "/translate", "application/x-www-form-urlencoded", body + "target_lang=DE"));
  }
  return outcome(client.receive());
}

inline std::string invalid_utf8(int port, Random& random) {
  Client client(port);
  const std::string bad = "q=abc" + noise(random, 1 + below(random, 40)) + "\xFF&source=en&target=de";
  const std::string json = "{\"q\":\"abc\xC3\x28" + noise(random, 20) + "\",\"source\":\"en\",\"target\":\"de\"}";
  if (below(random, 2)) {
    client.send(request("POST", "/translate", "application/x-www-form-urlencoded", bad));
  } else {
    client.send(request("POST", "/translate", "application/json", json));
  }
  return outcome(client.receive());
}

// A request with some bytes that are others, or fewer: may still be one.
inline std::string damaged(int port, Random& random, const GoodRequests& good) {
  Client client(port, 2);
  std::string bytes = good.make(random).bytes;
  const size_t first = below(random, 2) ? 0 : bytes.find("\r\n\r\n") + 4;
  for (size_t n = 1 + below(random, 8); n > 0 && first < bytes.size(); --n) {
    const size_t at = first + below(random, bytes.size() - first);
    if (below(random, 3) == 0)
      bytes.erase(at, 1 + below(random, 10));
    else
      bytes[at] = below(random, 2) ? static_cast<char>(random()) : "{}[]\",:\\\r\n%&=\x01"[below(random, 15)];
  }
  client.send(bytes);
  return outcome(client.receive());
}

inline std::string bad_json(int port, Random& random) {
  std::string body;
  switch (below(random, 4)) {
    case 0:
      body = std::string(500'000, '[');
      break;
    case 1:
      body = "{\"q\":\"" + std::string(900'000, '\x01');
      break;
    case 2:
      body = "{\"a\":1,\"a\":2}";
      break;
    default:
      for (int i = 0; i < 50'000; ++i) body += (i ? ",\"k" : "{\"k") + std::to_string(i) + "\":{}";
  }
  Client client(port);
  client.send(request("POST", "/translate", "application/json", body));
  return outcome(client.receive());
}

inline std::string header_flood(int port, Random& random) {
  Client client(port, 5);
  client.send("POST /translate HTTP/1.1\r\n");
  const bool one = below(random, 2);
  if (one) client.send("X-Long: ");
  for (int i = 0; i < 3000 && client.send(one ? std::string(100, 'x') : "X-" + std::to_string(i) + ": " + std::string(40, 'y') + "\r\n");
       ++i)
    if (client.ended()) break;
  return outcome(client.receive());
}

inline std::string nonsense(int port, Random& random) {
  static const char* const heads[] = {
      "POST /translate HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
      "POST /translate HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999\r\n\r\n",
      "POST /translate HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
      "POST /translate HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n",
      "GET /../../etc/passwd HTTP/1.1\r\nHost: x\r\n\r\n",
      "DELETE /translate HTTP/1.1\r\nHost: x\r\n\r\n",
      "GET /%00%ff?q=%zz&%=& HTTP/1.1\r\nHost: x\r\n\r\n",
      "POST /translate HTTP/1.1\r\nHost: x\r\nContent-Type: multipart/form-data; boundary=\r\nContent-Length: 5\r\n\r\n--\r\n\r",
      "GET / HTTP/9.9\r\n\r\n",
      "\r\n\r\n\r\n"};
  Client client(port, 2);
  const size_t kind = below(random, std::size(heads) + 2);
  client.send(kind < std::size(heads) ? std::string(heads[kind]) : noise(random, 10 + below(random, 3000)) + "\r\n\r\n");
  return outcome(client.receive());
}

// Many requests at once on one connection: the answers come in their order.
inline std::string pipelined(int port, Random& random, const GoodRequests& good) {
  Client client(port);
  std::vector<Good> all;
  std::string bytes;
  for (int i = 0; i < 12; ++i) all.push_back(good.make(random)), bytes += all.back().bytes;
  client.send(bytes);
  for (const Good& g : all) {
    const Answer a = client.receive(g.bytes.starts_with("HEAD"));
    if (a.status != 200) return outcome(a);
    if (!right(g, a)) return "WRONG";
  }
  return "200";
}

// Asks for much and never reads it.
inline std::string never_reads(int port, Random& random) {
  Client client(port);
  for (int i = 0; i < 200 && client.send(request("GET", "/openapi.json", "", "")); ++i) {
    if (i % 50 == 0) usleep(1000);
  }
  usleep(static_cast<useconds_t>(below(random, 3'000'000)));
  return "left";
}

}  // namespace soak
