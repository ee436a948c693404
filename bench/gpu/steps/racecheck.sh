# Threads that do not wait for each other.
((real)) || { echo 'needs a card' && exit; }
some='Ops/CardCase.Bf16/*attention*:Ops/CardCase.Bf16/*loss*:Ops/CardCase.Bf16/*norm*:Ops/CardCase.Bf16/*logits*'
for tool in racecheck synccheck; do
  STARLING_TEST_BACKEND=$tests timeout 32 compute-sanitizer --target-processes all --tool $tool --print-limit 10 \
    "$kit/bin/test_cuda" --gtest_filter="$some" --gtest_brief=1 | tee "$work/$tool.out"
done
for tool in racecheck synccheck; do
  grep -a 'SUMMARY' "$work/$tool.out" | tail -n 1 | grep -q 'SUMMARY: 0 ' ||
    { echo "$tool: $(grep -a 'SUMMARY' "$work/$tool.out" || echo 'no summary: it is missing, has crashed or takes too long')" && exit 1; }
done
echo 'racecheck and synccheck: nothing found'
