// Links through a third text.
#include "document/aligned_text.h"

#include <gtest/gtest.h>

namespace starling {
namespace {

using Links = std::vector<AlignedText::Link>;

TEST(LinkedThrough, EachLinkLeadsOnByTheTokenThatItSharesMostWith) {
  // "das rote Haus" -> "the red house" -> "la maison rouge"
  const AlignedText first{"the red house", {{{0, 3}, {0, 3}}, {{4, 8}, {4, 7}}, {{9, 13}, {8, 13}}}};
  const AlignedText second{"la maison rouge", {{{0, 3}, {0, 2}}, {{8, 13}, {3, 9}}, {{4, 7}, {10, 15}}}};
  const AlignedText through = linked_through(first, second);
  EXPECT_EQ(through.text, "la maison rouge");
  EXPECT_EQ(through.links, (Links{{{0, 3}, {0, 2}}, {{9, 13}, {3, 9}}, {{4, 8}, {10, 15}}}));
}

TEST(LinkedThrough, TokensOfTheTwoModelsMayBeCutInOtherPlaces) {
  const AlignedText first{"abcdefgh", {{{0, 1}, {0, 3}}, {{1, 2}, {3, 5}}, {{2, 3}, {5, 8}}}};
  // Bytes 2 to 5: one of the first token, two of the second; 4 to 6: one of each, of which the first counts.
  EXPECT_EQ(linked_through(first, {"x", {{{2, 5}, {0, 1}}, {{4, 6}, {0, 1}}}}).links, (Links{{{1, 2}, {0, 1}}, {{1, 2}, {0, 1}}}));
  EXPECT_EQ(linked_through(first, {"x", {{{0, 8}, {0, 1}}}}).links, (Links{{{0, 1}, {0, 1}}}));
}

TEST(LinkedThrough, WhatTheFirstModelDoesNotLinkIsNotLinked) {
  const AlignedText first{"abcdef", {{{0, 1}, {4, 6}}, {{3, 4}, {0, 2}}}};  // in another order than their targets
  EXPECT_EQ(linked_through(first, {"xyz", {{{2, 4}, {0, 1}}, {{1, 3}, {1, 2}}, {{5, 6}, {2, 3}}}}).links,
            (Links{{{3, 4}, {1, 2}}, {{0, 1}, {2, 3}}}));
  EXPECT_TRUE(linked_through({"ab", {}}, {"x", {{{0, 2}, {0, 1}}}}).links.empty());
}

}  // namespace
}  // namespace starling
