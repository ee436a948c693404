# Every op against the double-precision reference, twice with equal bits; then the tests that the table of ops lacks.
filter='Ops/CardCase.*:CudaBackend.*:CudaMemory.*:*Attention*:*Output*:*Recurrent*:*Flat*:*Compression*:*Codes*'
filter+=':-Emulator.*:LargeTensors.*:CudaParity.*'
((real)) || filter='CudaMemory.*'
STARLING_TEST_BACKEND=$tests "$kit/each.sh" "$kit/bin/test_cuda" "$filter" "$processes"
