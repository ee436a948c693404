# Twenty updates beside the processor; log-probabilities, losses and gradients of an independent implementation.
cd "$kit" || exit
filter='*EmulatedTraining*'
((real)) || filter='*EmulatedTraining*F32*Transformer'
updates=$(STARLING_TEST_BACKEND=$tests ./each.sh bin/test_train20 "$filter" 4)
status=$?
((real)) && {
  values=$(STARLING_TEST_BACKEND=$all ./each.sh bin/test_train20 '*IndependentValues*f32*' 8)
  status=$((status | $?))
}
echo "updates: $updates${values:+; values: $values}"
exit "$status"
