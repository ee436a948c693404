# Reads and writes outside of memory. What arenas take back is overwritten, so that it shows where it is read again.
((real)) || { echo 'needs a card' && exit; }
STARLING_POISON=1 STARLING_TEST_BACKEND=$tests compute-sanitizer --target-processes all --tool memcheck --print-limit 20 \
  "$kit/bin/test_cuda" --gtest_filter='Ops/CardCase.Bf16/*' --gtest_brief=1 | tee "$work/memcheck.out"
grep -a 'ERROR SUMMARY' "$work/memcheck.out" | tail -n 1 | grep ' 0 errors' ||
  { echo "memcheck: $(grep -a 'SUMMARY' "$work/memcheck.out" || echo 'no summary: it is missing, or has crashed')" && exit 1; }
