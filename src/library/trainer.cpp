#include "run/trainer.h"

#include "library/guarded.h"
#include "run/fine_tuning.h"
#include "starling/trainer.h"

namespace starling {

v0::TrainResult v0::train(const std::string& configuration, const TrainOptions& options) {
  return guarded([&] {
    const Config config = load_run_config(configuration, options.keys);
    require_data(config, true);
    TrainingWatch watch{.silent = true, .signals = false};
    watch.stop = options.stop;
    if (options.event) watch.event = [&](std::string_view json) { options.event(std::string(json)); };
    if (options.log) watch.log = [&](std::string_view line) { options.log(std::string(line.substr(0, line.find_last_not_of('\n') + 1))); };
    World world = make_local_world();
    return v0::TrainResult{run_training(config, world, watch) == 0, config.train.output};
  });
}

}  // namespace starling
