# Sourced by first_light.sh: sizes of models and numbers of processes, for a card or for trying the scripts on a processor.
if ((real)); then
  tests=card all=card-all processes=8 seconds=4 updates=200 resumed=100 translate_batches='64 512' preset=transformer-small recipe='' peer=''
  big='--preset transformer-big --batch-tokens 25000'
  base='--preset transformer-base --batch-tokens 25000'
  gnmt='--preset gnmt-4 --batch-sentences 128'
  translate='--preset transformer-base --vocabulary 8000'
else
  tests=cuda-emulated all=cuda-emulated processes=1 seconds=1 updates=10 resumed=10 translate_batches=64 preset=transformer-tiny
  big='--preset transformer-tiny --batch-tokens 500 --vocabulary 1000'
  base=$big
  gnmt='--preset gnmt-small --batch-sentences 4 --vocabulary 500'
  recipe='--train.max-steps 20 --valid.every 20 --checkpoint.every 20 --train.batch-tokens 500'
  peer='--device cpu --tiny'
  translate='--preset transformer-tiny --vocabulary 500'
fi
export tests all processes big base gnmt seconds updates resumed translate_batches preset recipe peer translate
