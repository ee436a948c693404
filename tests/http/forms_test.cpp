// Forms as clients send them, whole and broken: expected fields are written down here, or come from the standards' own examples.
#include "http/forms.h"

#include <gtest/gtest.h>

#include <random>

namespace starling {
namespace {

struct Taken {
  NamedValues fields;
  std::string complaint, body;
  bool operator==(const Taken&) const = default;
};

void PrintTo(const Taken& taken, std::ostream* out) {
  for (const auto& [name, value] : taken.fields) *out << '{' << name << ": " << value << '}';
  *out << " complaint: " << taken.complaint << " body: " << taken.body;
}

Taken take(const std::string& type, const std::string& body, size_t most = 100) {
  HttpRequest request{"POST", "/", "", {{"content-type", type}}, {}, body};
  const std::string complaint = take_form(request, most);
  return {request.fields, complaint, request.body};
}

std::string part(const std::string& boundary, const std::string& name, const std::string& value) {
  return "--" + boundary + "\r\nContent-Disposition: form-data; name=\"" + name + "\"\r\n\r\n" + value + "\r\n";
}

TEST(Forms, OtherBodiesStayAsTheyAre) {
  EXPECT_EQ(take("application/json", "{\"a=b\":1}"), (Taken{{}, "", "{\"a=b\":1}"}));
  EXPECT_EQ(take("", "a=b"), (Taken{{}, "", "a=b"}));
}

TEST(Forms, UrlencodedFieldsHaveAllBehindTheFirstEqualsSign) {
  EXPECT_EQ(take("application/x-www-form-urlencoded", "q=a=b+c%20%C3%A4&&x&=y").fields,
            (NamedValues{{"q", "a=b c ä"}, {"x", ""}, {"", "y"}}));
}

TEST(Forms, MultipartBoundariesMayBeOfAnyLength) {
  for (const std::string& boundary : std::vector<std::string>{"b", "-", "0123456789ABCDEF", std::string(70, 'x')}) {
    const std::string body =
        part(boundary, "q", "a b&") + part(boundary, "empty", "") + part(boundary, "target", "de") + "--" + boundary + "--";
    const Taken expected{{{"q", "a b&"}, {"empty", ""}, {"target", "de"}}, "", ""};
    EXPECT_EQ(take("multipart/form-data; boundary=" + boundary, body), expected);
    EXPECT_EQ(take("Multipart/Form-Data; charset=utf-8; Boundary=\"" + boundary + "\"; x=y", body + "\r\nepilogue"), expected);
    EXPECT_EQ(take("multipart/form-data;boundary=" + boundary + " ;x", "preamble\r\n" + body), expected);
  }
  EXPECT_EQ(take("multipart/form-data; boundary=\"a b; c\"", part("a b; c", "q", "x") + "--a b; c--").fields, (NamedValues{{"q", "x"}}));
}

TEST(Forms, MultipartValuesAreTakenByteForByte) {
  const std::string value = std::string("\0\r\n--bb\r\n--b x\r\n--\r\n\xff --b--\r\n\r\n", 32) + "--b";
  EXPECT_EQ(take("multipart/form-data; boundary=b", part("b", "q", value) + "--b--\r\n").fields, (NamedValues{{"q", value}}));
}

TEST(Forms, MultipartHeadersAreReadAsTheStandardHasThem) {
  // RFC 7578's names with quotes, other headers, blanks behind the boundary, and a file as browsers send it.
  const std::string body =
      "--b \t\r\nContent-Type: text/plain; name=no\r\ncontent-disposition:form-data;filename=\"c:\\dir\\n.txt\"; NAME = \"say "
      "\\\"q\\\"\"\r\n\r\n"
      "v\r\n--b\r\nContent-Disposition: form-data; name=plain ; x\r\n\r\nw\r\n--b--\r\n";
  EXPECT_EQ(take("multipart/form-data; boundary=b", body), (Taken{{{"say \"q\"", "v"}, {"plain", "w"}}, "", ""}));
}

TEST(Forms, BrokenMultipartFormsAreRefusedWithTheReason) {
  const std::string type = "multipart/form-data; boundary=b", q = part("b", "q", "x");
  const std::string open = "the multipart form does not end with a line --b--; send it whole, with line breaks of CR and LF";
  EXPECT_EQ(take(type, "").complaint, open);
  EXPECT_EQ(take(type, q).complaint, open);
  EXPECT_EQ(take(type, q + "--b").complaint, open);
  EXPECT_EQ(take(type, "--b\nContent-Disposition: form-data; name=q\n\nx\n--b--\n").complaint, open);
  const std::string nameless =
      "part 2 of the multipart form has no name; send Content-Disposition: form-data; name=\"...\" and an empty line before its value";
  EXPECT_EQ(take(type, q + "--b\r\n\r\nx\r\n--b--").complaint, nameless);
  EXPECT_EQ(take(type, q + "--b\r\nContent-Disposition: form-data; name=q\r\n--b--").complaint, nameless);
  EXPECT_EQ(take(type, q + "--b\r\nContent-Disposition: form-data\r\n\r\n\r\n--b--").complaint, nameless);
  const std::string none =
      "the multipart form has no boundary; send Content-Type: multipart/form-data; boundary=..., or an urlencoded form";
  for (const std::string bad : {"", "; boundary", "; boundary=", "; boundary=\"\"", "; xboundary=b"})
    EXPECT_EQ(take("multipart/form-data" + bad, q + "--b--").complaint, none) << bad;
}

TEST(Forms, TakeSoManyFieldsOnly) {
  std::string body;
  for (int i = 0; i < 10; ++i) body += part("b", "q", "x");
  EXPECT_EQ(take("multipart/form-data; boundary=b", body + "--b--", 4).fields.size(), 4u);
  EXPECT_EQ(take("application/x-www-form-urlencoded", "a&b&c&d&e", 4).fields.size(), 4u);
}

TEST(Forms, MultipartFieldsOfAnyBytesComeBack) {
  std::mt19937_64 random(18);
  const std::string kPieces[] = {"\r\n", "--", "b", "\r", "\n", "-", "x", " ", "\"", "\\", ";", std::string(1, '\0')};
  for (int round = 0; round < 5000; ++round) {
    NamedValues fields;
    std::string body;
    for (uint64_t n = 1 + random() % 4; n > 0; --n) {
      std::string value;
      for (uint64_t i = random() % 20; i > 0; --i) value += kPieces[random() % std::size(kPieces)];
      // A client chooses a boundary that no line of the values is.
      if (("\r\n" + value).find("\r\n--b") != std::string::npos) continue;
      fields.emplace_back("q", value), body += part("b", "q", value);
    }
    ASSERT_EQ(take("multipart/form-data; boundary=b", body + "--b--"), (Taken{fields, "", ""})) << body;
  }
}

}  // namespace
}  // namespace starling
