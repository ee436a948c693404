# Every op against the double-precision reference, twice with equal bits; then the tests that the table of ops lacks. Memory has a step
# of its own.
filter='Ops/CardCase.*:CudaBackend.*:*Attention*:*Output*:*Recurrent*:*Flat*:*Compression*:*Codes*'
filter+=':-Emulator.*:LargeTensors.*:CudaParity.*'
((real)) || filter='CudaBackend.*'
STARLING_TEST_BACKEND=$tests "$kit/each.sh" "$kit/bin/test_cuda" "$filter" "$processes"
