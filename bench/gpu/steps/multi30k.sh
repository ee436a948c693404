# Multi30k in little more than a minute; a processor's 7,000 updates give 39.2 BLEU on test2016.
cd "$work" || exit
rm -rf m30k
from=$SECONDS texts=$kit/data/multi30k
"$starling" train -c "$kit/data/multi30k.yml" --vocab.source "$kit/data/multi30k.spm" --data.source "$texts/train.en.gz" \
  --data.target "$texts/train.de.gz" --valid.source "$texts/valid.en" --valid.target "$texts/valid.de" --train.output m30k \
  --device "$DEVICE" --train.max-minutes 1.3 $recipe || exit
took=$((SECONDS - from))
"$starling" translate --model m30k --device "$DEVICE" --input "$texts/test2016.en" --output m30k.out --beam 4 || exit
"$starling" evaluate --hypotheses m30k.out --references "$texts/test2016.de" --metrics bleu,chrf | tee m30k.scores
echo "$(sed -E 's/^([^|]*).* = ([0-9.]+).*/\1 \2/' m30k.scores | paste -sd ' '), training took $took s"
