# Tensors of more than 2^32 elements.
((real)) || { echo 'needs a card' && exit; }
EACH_SECONDS=30 STARLING_TEST_BACKEND=$tests "$kit/each.sh" "$kit/bin/test_cuda" 'LargeTensors.*' 1
