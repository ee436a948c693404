// How large the doctor takes a checkpoint to be, beside one that was written.
#include <fstream>

#include "doctor/doctor.h"
#include "run/trainer.h"
#include "tests/run/trainer_fixture.h"

namespace starling {
namespace {

class CheckpointSize : public TrainerTest {};

// The bytes of the tensors in a safetensors file: what follows the length of its header and the header.
int64_t tensor_bytes(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  uint64_t header = 0;
  file.read(reinterpret_cast<char*>(&header), sizeof header);
  EXPECT_TRUE(file.good()) << path;
  return static_cast<int64_t>(std::filesystem::file_size(path)) - static_cast<int64_t>(sizeof header + header);
}

TEST_F(CheckpointSize, IsToldForEveryOptimizer) {
  std::vector<std::pair<std::string, double>> runs = {{"adam", 0.9}};  // with averaging
  for (const char* name : words(OptimizerKind{})) runs.emplace_back(name, 0);
  for (const auto& [name, ema] : runs) {
    Config c = config(fmt::format("{}-{}", name, ema));
    c.train.optimizer.optimizer = from_word<OptimizerKind>(name), c.train.optimizer.ema = ema;
    c.train.max_steps = 2, c.valid.source = c.valid.target = "";
    c.vocab.training.size = 40;  // as many pieces as the text gives
    ASSERT_EQ(run_training(c), 0) << name;
    int64_t bytes = 0;
    for (const auto& file : std::filesystem::directory_iterator(c.train.output + "/checkpoints/step-00000002"))
      if (file.path().extension() == ".safetensors") bytes += tensor_bytes(file.path());
    EXPECT_EQ(checkpoint_bytes(c), bytes) << name << ", averaging " << ema;
  }
}

}  // namespace
}  // namespace starling
