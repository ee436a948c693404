/* The translator of Starling for C, and so for languages that call C. docs/guides/library.md has an example.
 * Text is UTF-8. Functions may be called from any thread; a result belongs to whoever gets it. A process that was forked must open
 * translators of its own; calls with those of its parent fail. */
#ifndef STARLING_H
#define STARLING_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#define STARLING_C_API __attribute__((visibility("default")))

typedef struct starling_translator starling_translator;
typedef struct starling_result starling_result;

/* Returns the version of the library, such as "0.1.0". */
STARLING_C_API const char* starling_version(void);

/* Returns what went wrong in the last call of this thread that failed, until the next one that does. */
STARLING_C_API const char* starling_error(void);

/* Opens a model: a run directory, a checkpoint, a model directory, or a model of another program. device: "auto", "cpu", "cuda", "cuda:1";
 * NULL = "auto". threads: 0 to 4096; 0 = one per core. Returns NULL if that fails. */
STARLING_C_API starling_translator* starling_open(const char* model, const char* device, int threads);
/* Waits for translations under way. NULL is ignored. */
STARLING_C_API void starling_close(starling_translator* translator);

/* Set by starling_default_options(). A later version may have further members at the end. */
typedef struct starling_options {
  size_t size;                 /* of this structure */
  int beam;                    /* 0 = the model's own setting */
  int n_best;                  /* translations of each sentence, 1 */
  double length_penalty;       /* below 0 = the model's own setting */
  double coverage_penalty;     /* below 0 = the model's own setting */
  int no_repeat_ngram;         /* below 0 = the model's own setting */
  const char* target_language; /* of a model that translates into several; NULL = none */
  const char* source_prefix;   /* pieces, with spaces between them; NULL = the model's own setting */
  const char* target_prefix;   /* likewise */
  int alignment;               /* not 0: also find which source token each target token comes from */
  int reserved;
  /* What the first version of the structure did not have: */
  const char* suppress;      /* pieces, or sequences of them, with " ||| " between them, that translations never contain; NULL = the model's
                                own setting */
  const char* end_tokens;    /* pieces, with spaces between them, that end a translation in place of the end of sentence; NULL = that */
  int min_length;            /* tokens, at least; below 0 = the model's own setting */
  int max_length;            /* tokens, at most; 0 = by the model's own setting */
  int max_source_tokens;     /* sources are cut there; 0 = at 1000 */
  double patience;           /* 0 = the model's own setting; a search ends when beam * patience hypotheses have ended */
  double repetition_penalty; /* 0 = the model's own setting; above 1: tokens that a translation has already become less probable */
  double prefix_bias;        /* 0: the target prefix is forced; else how much of the probability its tokens get */
  int sample;                /* not 0: draw the n_best translations from the model's distribution */
  int top_k;                 /* draw from so many most probable tokens; 0 = all */
  double top_p;              /* and of these from the fewest that have this much of the probability, 1 */
  double temperature;        /* 1; below 1, probable tokens are drawn more often */
  unsigned long long seed;   /* 1; equal seeds give equal translations */
  int confidence;            /* not 0: also how probably translations and their words are right; the model needs the calibration of
                                `starling calibrate` */
  const char* glossary;      /* lines of a term, a tab and its translation, which must be in the translation; NULL = none */
} starling_options;
STARLING_C_API void starling_fill_options(starling_options* options, size_t size);
/* Sets the defaults of as many members as the program that calls it was compiled with. */
static inline void starling_default_options(starling_options* options) { starling_fill_options(options, sizeof *options); }

/* Translates sentences. options: NULL = the defaults. Returns NULL if that fails. */
STARLING_C_API starling_result* starling_translate(starling_translator* translator, const char* const* sentences, size_t count,
                                                   const starling_options* options);
/* Translates a sentence with a beam of 1, or draws one translation, and calls `token` for each piece as it comes, from a thread of the
 * translator: with the piece, the translation so far, whether it is the last one, and `data`. If that returns 0, the translation ends
 * there. Returns the whole result, NULL if that fails. */
typedef int (*starling_on_token)(const char* piece, const char* text, int last, void* data);
STARLING_C_API starling_result* starling_translate_stream(starling_translator* translator, const char* sentence,
                                                          const starling_options* options, starling_on_token token, void* data);
/* The number of sentences, and of translations of a sentence, best first; at least one. */
STARLING_C_API size_t starling_sentences(const starling_result* result);
STARLING_C_API size_t starling_translations(const starling_result* result, size_t sentence);
/* Of one translation. Strings are valid until the result is freed; numbers that are too large, and no result, give NULL or 0. */
STARLING_C_API const char* starling_text(const starling_result* result, size_t sentence, size_t translation);
STARLING_C_API double starling_score(const starling_result* result, size_t sentence, size_t translation);
STARLING_C_API double starling_log_probability(const starling_result* result, size_t sentence, size_t translation); /* nats */
STARLING_C_API size_t starling_tokens(const starling_result* result, size_t sentence, size_t translation);
STARLING_C_API const char* starling_token(const starling_result* result, size_t sentence, size_t translation, size_t token);
/* Pairs of a source and a target token, counted from 0, in ascending order. */
STARLING_C_API size_t starling_links(const starling_result* result, size_t sentence, size_t translation);
STARLING_C_API void starling_link(const starling_result* result, size_t sentence, size_t translation, size_t link, size_t* source,
                                  size_t* target);
/* The confidence of a translation, 0 to 1; below 0 if it was not asked for. And of its words: the bytes of the text that are the word, and
 * the probability that a reference translation would have it. */
STARLING_C_API double starling_confidence(const starling_result* result, size_t sentence, size_t translation);
STARLING_C_API size_t starling_words(const starling_result* result, size_t sentence, size_t translation);
STARLING_C_API double starling_word(const starling_result* result, size_t sentence, size_t translation, size_t word, size_t* begin,
                                    size_t* end);
STARLING_C_API void starling_free_result(starling_result* result);

/* Translates a text of any length, keeping lines and white space, or an HTML document (html: not 0), keeping its markup. Returns a string
 * for starling_free_string(), NULL if that fails. */
STARLING_C_API char* starling_translate_document(starling_translator* translator, const char* text, int html,
                                                 const starling_options* options);
STARLING_C_API void starling_free_string(char* string);

#ifdef __cplusplus
}
#endif

#endif
