# Reads and writes outside of memory, and of what was never written.
((real)) || { echo 'needs a card' && exit; }
for tool in memcheck initcheck; do
  STARLING_POISON=1 STARLING_TEST_BACKEND=$tests timeout 45 compute-sanitizer --target-processes all --tool $tool --print-limit 20 \
    "$kit/bin/test_cuda" --gtest_filter='Ops/CardCase.Bf16/*' --gtest_brief=1 | tee "$work/$tool.out"
done
grep -a -h 'ERROR SUMMARY\|PASSED' "$work/memcheck.out" "$work/initcheck.out" | paste -sd ' '
! grep -a -q 'ERROR SUMMARY: [1-9]' "$work/memcheck.out" "$work/initcheck.out"
