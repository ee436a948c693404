# Threads that do not wait for each other.
((real)) || { echo 'needs a card' && exit; }
some='Ops/CardCase.Bf16/*attention*:Ops/CardCase.Bf16/*loss*:Ops/CardCase.Bf16/*norm*:Ops/CardCase.Bf16/*logits*'
for tool in racecheck synccheck; do
  STARLING_TEST_BACKEND=$tests timeout 40 compute-sanitizer --target-processes all --tool $tool --print-limit 10 \
    "$kit/bin/test_cuda" --gtest_filter="$some" --gtest_brief=1 | tee "$work/$tool.out"
done
grep -a -h 'SUMMARY\|PASSED' "$work/racecheck.out" "$work/synccheck.out" | paste -sd ' '
! grep -a -q 'SUMMARY: [1-9]' "$work/racecheck.out" "$work/synccheck.out"
