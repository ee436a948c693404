#include "text/script.h"

#include "text/unicode.h"

namespace starling {

namespace {

struct Block {
  char32_t first, last;
  Script script;
};
constexpr Block kBlocks[] = {
    {0x0E00, 0x0E7F, Script::thai},   {0x0E80, 0x0EFF, Script::lao},   {0x0F00, 0x0FFF, Script::tibetan}, {0x1000, 0x109F, Script::burmese},
    {0x1780, 0x17FF, Script::khmer},  {0x19E0, 0x19FF, Script::khmer}, {0x3040, 0x30FF, Script::kana},    {0x31F0, 0x31FF, Script::kana},
    {0x3400, 0x4DBF, Script::han},    {0x4E00, 0x9FFF, Script::han},   {0xA9E0, 0xA9FF, Script::burmese}, {0xAA60, 0xAA7F, Script::burmese},
    {0xAC00, 0xD7A3, Script::hangul}, {0xF900, 0xFAFF, Script::han},   {0xFF66, 0xFF9F, Script::kana},    {0x20000, 0x3FFFF, Script::han}};

}  // namespace

Script script_of(char32_t code_point) {
  const Block* const block = entry_of(kBlocks, code_point);
  return block != nullptr ? block->script : Script::other;
}

bool is_unspaced(char32_t code_point) {
  const Script script = script_of(code_point);
  return script != Script::other && script != Script::hangul;
}

}  // namespace starling
