# The tests of models and of the search.
models='-*CentralDifferences*' search='-*SearchNeed*:*EmulatedSearch*'
((real)) || models='*Loss*:-*CentralDifferences*' search='BeamSearch*'
a=$(STARLING_TEST_BACKEND=$all "$kit/each.sh" "$kit/bin/test_models" "$models" "$processes")
status=$?
b=$(STARLING_TEST_BACKEND=$all "$kit/each.sh" "$kit/bin/test_decode" "$search" "$processes")
status=$((status | $?))
c=$(STARLING_TEST_BACKEND=$tests "$kit/each.sh" "$kit/bin/test_decode" '*EmulatedSearch*' 4)
status=$((status | $?))
echo "models: $a; search: $b; beside the processor: $c"
exit "$status"
