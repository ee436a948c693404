# The card's memory, by one process with nothing beside it.
STARLING_TEST_BACKEND=$tests "$kit/each.sh" "$kit/bin/test_cuda" 'CudaMemory.*' 1
