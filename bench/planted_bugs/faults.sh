# Likely mistakes in training together and in resuming: does some run of tests/faults find each? (Read by ../planted_bugs.sh.)
target=test_faults
tests() { GOMP_SPINCOUNT=1000 timeout 600 "$copy/build/tests/test_faults" --seeds 0 760 --first 2>&1; }

# name | file | sed expression
bugs=(
  "a lost residual|src/strategies/sparse.cpp|s/std::vector<StateTensor> all{{\"sparse.residual\", residual_, "\
"false}};/std::vector<StateTensor> all;/"
  "a bucket applied twice|src/strategies/synchronous.cpp|s/^      exchanges_\[b\] = all_reduce_in_pieces(.*);/&\n      if (b == 1) {\n  "\
"      for (const Pending\& p : exchanges_[b]) p.wait();\n  &\n      }/"
  "an off-by-one in the data|src/run/run_checkpoints.cpp|s/run_.stream->seek({s.integer(\"epoch\"), "\
"batch});/run_.stream->seek({s.integer(\"epoch\"), batch + 1});/"
  "a missing fsync of a file|src/storage/publication.cpp|/^PartInfo write_part/,/^}/s/  file->sync();//"
  "a missing fsync of a directory|src/storage/publication.cpp|s/  files_.sync_directory(aside_);//"
  "a skipped rank in a barrier|src/comm/algorithms/direct.cpp|/^Schedule dissemination_barrier/,/^}/s/distance < size;/distance < size "\
"- 1;/"
  "a stale fetch|src/strategies/deferred_gather.cpp|s/^  pending_\[b\].wait();//"
  "a moment of the wrong range|src/saving/rank_checkpoint.cpp|s/piece->bytes.data() + (both.begin - piece->range.begin) \* "\
"size/piece->bytes.data()/"
  "a mask keyed by rank|src/data/batch_parts.cpp|s/^  return sentences_of(batch, begin, std::max(begin, end));/  Batch part = "\
"sentences_of(batch, begin, std::max(begin, end));\n  for (int64_t\& id : part.sample_ids) id += static_cast<int64_t>(1000 * from);\n  "\
"return part;/"
  "a sentence that no rank has|src/data/batch_parts.cpp|s/^      end = i;/      end = i > begin ? i - 1 : i;/"
  "a resumed optimizer one update behind|src/run/run_checkpoints.cpp|s/  status_.epoch = s.integer(\"epoch\") + 1;/&\n  "\
"run_.replica->optimizer().set_updates(s.integer(\"step\") - 1);/"
  "a manifest before the shards|src/saving/rank_save.cpp|s/if (info.sha256.empty() \&\& first) {/if (info.sha256.empty() \&\& first "\
"\&\& false) {/"
)
