# cuBLASLt's answers for the products of the big Transformer, by alignment and by time; the output's with 31,999 and 32,000 pieces.
((real)) || { echo 'needs a card' && exit; }
"$kit/bin/products" | tee "$OUT/products.txt"
exit "${PIPESTATUS[0]}"
