// Requests as decent clients send them, with the answers that they got when they were asked alone.
#pragma once

#include <map>
#include <random>
#include <string>
#include <vector>

#include "client.h"

namespace soak {

using Random = std::mt19937_64;
inline size_t below(Random& random, size_t n) { return static_cast<size_t>(random() % n); }

struct Good {
  std::string kind, bytes;
  Json expected;          // of what the answer must be
  bool bodiless = false;  // the status alone counts
  // What is compared of an answer: all of it, if null.
  Json (*part)(const Json&) = nullptr;
};

inline bool right(const Good& g, const Answer& a) { return g.bodiless || (g.part ? g.part(a.json()) : a.json()) == g.expected; }

class GoodRequests {
 public:
  // Sentences: lines, each with its place in the language of the source.
  GoodRequests(std::vector<std::string> lines) : lines_(std::move(lines)) {}

  // Asks everything alone; false with what went wrong in `why`.
  bool learn(int port, std::string& why) {
    for (size_t i = 0; i < lines_.size(); ++i)
      for (size_t kind = 0; kind < kSingles; ++kind) {
        Client client(port);
        Good g = single(kind, i);
        client.send(g.bytes);
        const Answer a = client.receive();
        if (a.status != 200) return why = g.kind + ": " + a.body, false;
        single_answers_[{kind, i}] = a.json();
      }
    return true;
  }

  Good make(Random& random) const {
    const size_t kind = below(random, kSingles + 6), i = below(random, lines_.size());
    if (kind < kSingles) {
      Good g = single(kind, i);
      g.expected = single_answers_.at({kind, i});
      return g;
    }
    switch (kind - kSingles) {
      case 0:
        return batch(random, 2 + below(random, 12));
      case 1:
        return batch(random, 60);
      case 2: {
        Good g{"multipart", "", translation(i), false, text_of};
        const std::string b = "XsoakX";
        std::string body;
        for (const auto& [name, value] : std::map<std::string, std::string>{{"q", lines_[i]}, {"source", "en"}, {"target", "de"}})
          body += "--" + b + "\r\nContent-Disposition: form-data; name=\"" + name + "\"\r\n\r\n" + value + "\r\n";
        g.bytes = request("POST", "/translate", "multipart/form-data; boundary=" + b, body + "--" + b + "--\r\n");
        return g;
      }
      case 3: {
        Json texts = Json::array(), expected = Json::array();
        for (size_t n = 0; n < 3; ++n) {
          const size_t line = below(random, lines_.size());
          texts.push_back(lines_[line]), expected.push_back(translation(line));
        }
        const Json body{{"text", texts}, {"source_lang", "EN"}, {"target_lang", "DE"}};
        return {"deepl", request("POST", "/v2/translate", "application/json", body.dump()), expected, false, [](const Json& j) {
                  Json all = Json::array();
                  if (j.contains("translations"))
                    for (const Json& t : j["translations"]) all.push_back(t.value("text", "?"));
                  return all;
                }};
      }
      case 4: {  // paragraphs: the lines of a text are translated one by one
        const size_t other = below(random, lines_.size());
        const Json body{{"q", lines_[i] + "\n\n" + lines_[other]}, {"source", "en"}, {"target", "de"}};
        return {"paragraphs", request("POST", "/translate", "application/json", body.dump()),
                translation(i).get<std::string>() + "\n\n" + translation(other).get<std::string>(), false, text_of};
      }
      default: {
        static const char* const paths[] = {"/", "/languages", "/metrics", "/openapi.json", "/frontend/settings", "/ready"};
        return {"pages", request(below(random, 4) == 0 ? "HEAD" : "GET", paths[below(random, std::size(paths))], "", ""), nullptr, true};
      }
    }
  }

 private:
  static constexpr size_t kSingles = 7;
  static Json text_of(const Json& j) { return j.is_object() ? j.value("translatedText", Json()) : Json(); }
  Json translation(size_t i) const { return text_of(single_answers_.at({0, i})); }

  static std::string percent(const std::string& text) {
    std::string out;
    char code[8];
    for (const unsigned char c : text) snprintf(code, sizeof code, "%%%02X", c), out += code;
    return out;
  }
  Good single(size_t kind, size_t i) const {
    Json body{{"q", lines_[i]}, {"source", "en"}, {"target", "de"}};
    const auto json = [&](const char* name) { return Good{name, request("POST", "/translate", "application/json", body.dump()), {}}; };
    switch (kind) {
      case 0:
        return json("json");
      case 1:
        return body["alternatives"] = 1 + i % 4, json("alternatives");
      case 2:
        return body["alignment"] = true, json("alignment");
      case 3:
        return body["source"] = "auto", json("auto");
      case 4:
        return body["q"] = "<p>Hi, <b>" + lines_[i] + "</b> <br>&amp; <i>" + lines_[i] + "</i></p>", body["format"] = "html", json("html");
      case 5:
        return {
            "form", request("POST", "/translate", "application/x-www-form-urlencoded", "source=en&target=de&q=" + percent(lines_[i])), {}};
      default:
        return {"detect", request("POST", "/detect", "application/x-www-form-urlencoded", "q=" + percent(lines_[i])), {}};
    }
  }
  Good batch(Random& random, size_t count) const {
    Json texts = Json::array(), expected = Json::array();
    for (size_t n = 0; n < count; ++n) {
      const size_t i = below(random, lines_.size());
      texts.push_back(lines_[i]), expected.push_back(translation(i));
    }
    const Json body{{"q", texts}, {"source", "en"}, {"target", "de"}};
    return {count > 12 ? "large batch" : "batch", request("POST", "/translate", "application/json", body.dump()), expected, false, text_of};
  }

  std::vector<std::string> lines_;
  std::map<std::pair<size_t, size_t>, Json> single_answers_;
};

}  // namespace soak
