# The card, its driver, its libraries as the program finds them.
nvidia-smi -q -d CLOCK,POWER,ECC 2>/dev/null | head -40
uname -a  # gVisor: neither ncu nor compute-sanitizer
cat "$kit/commit" 2>/dev/null
nproc
ldd --version | head -1
"$starling" --version || exit
"$starling" --version | grep '^cards'
