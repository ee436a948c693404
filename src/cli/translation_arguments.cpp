#include "cli/translation_arguments.h"

#include <utility>

#include "program/arguments.h"
#include "program/help.h"

namespace starling {

void add_models(CLI::App& verb, TranslateOptions& o) {
  verb.add_option("-m,--model", o.models, "run directory, checkpoint or model directory; given several times, an ensemble of them")
      ->required()
      ->allow_extra_args(false)
      ->type_name("TEXT");
  verb.add_option("--weights", o.weights, "of several --model, with commas between them: how much each one counts; default: all alike")
      ->delimiter(',')
      ->check(real_range(0, 1e6))
      ->group(kFurtherGroup);
}

void add_sampling(CLI::App& verb, TranslateOptions& o) {
  CLI::Option* sampling =
      verb.add_flag("--sampling", o.sampling, "draw translations at random with the model's probabilities, --n-best of each line");
  verb.add_option("--sampling-top-k", o.drawing.top_k, "draw each piece from this many most probable ones; 0 = all")
      ->needs(sampling)
      ->check(CLI::Range(0, 1024))
      ->capture_default_str()
      ->group(kFurtherGroup);
  verb.add_option("--sampling-temperature", o.drawing.temperature,
                  "probabilities are raised to the power 1 / temperature: below 1, what is probable is drawn more often")
      ->needs(sampling)
      ->check(real_range(0.001, 1000))
      ->capture_default_str()
      ->group(kFurtherGroup);
  verb.add_option("--seed", o.drawing.key, "of the random numbers: the same seed draws the same translations")
      ->needs(sampling)
      ->capture_default_str()
      ->group(kFurtherGroup);
}

void add_computing(CLI::App& verb, TranslateOptions& o) {
  verb.add_option("--batch-size", o.batch_sentences, "sentences translated at once, at the most")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  add_device_options(verb, o.compute);
}

void take_search(const SearchArguments& given, TranslateOptions& o) {
  o.beam_given = given.given("beam");
  o.search = [&given](SearchOptions of_model) { return given.apply(std::move(of_model)); };
}

}  // namespace starling
