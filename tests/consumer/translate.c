/* Translates a sentence: translate_c MODEL SENTENCE */
#include <starling.h>
#include <stdio.h>

int main(int argc, char** argv) {
  starling_translator* translator = starling_open(argc > 1 ? argv[1] : NULL, NULL, 1);
  const char* sentence = argc > 2 ? argv[2] : "";
  starling_result* result = translator ? starling_translate(translator, &sentence, 1, NULL) : NULL;
  if (!result) return fprintf(stderr, "%s\n", starling_error()), 1;
  puts(starling_text(result, 0, 0));
  starling_free_result(result);
  starling_close(translator);
  return 0;
}
