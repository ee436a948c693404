#!/usr/bin/env bash
# What `starling watch` takes for 20 runs of 100,000 records each, made up here: time to read them, time of an answer with one changed run
# and with none, size of the answers and of a report, memory. And, where there is Chromium, how long its page takes to draw all of them.
# Usage: bench/watch.sh STARLING [RUNS [RECORDS]]   A minute, and 600 MB in a temporary directory.
set -euo pipefail
starling=$(realpath "${1:?usage: bench/watch.sh STARLING [RUNS [RECORDS]]}")
runs=${2:-20} records=${3:-100000}
out=$(mktemp -d)
pid=
trap '[[ -z $pid ]] || kill "$pid"; rm -rf "$out"' EXIT
awk -v runs="$runs" -v records="$records" -v out="$out" 'BEGIN {
  head = "{\"schema\":1,\"type\":\"%s\",\"time\":\"2026-11-27T10:00:00Z\",\"step\":%d,"
  report = "\"epoch\":1,\"loss\":%.4f,\"target_tokens_per_second\":%.1f,\"learning_rate\":%.3e,\"gradient_norm\":%.4f,"
  report = report "\"noise_scale\":%.1f,\"memory_mib\":900.5,\"fraction\":%.4f,\"seconds_left\":100}\n"
  validation = "\"scores\":{\"bleu\":%.2f},\"metric\":\"bleu\",\"best\":true,\"seconds\":3}\n"
  for (r = 1; r <= runs; ++r) {
    dir = sprintf("%s/runs/run-%02d", out, r); system("mkdir -p " dir); file = dir "/events.jsonl"
    for (i = 1; i <= records; ++i) {
      loss = 2 + 6 * exp(-i / 5000) + 0.1 * sin(i * r)
      printf head report, "report", 10 * i, loss, 8000 + 100 * sin(i), 1e-3 / sqrt(1 + i / 100), 1 + 0.5 * sin(i / 7), 1e4 + i,
        i / records >file
      if (i % 1000 == 0) printf head validation, "validation", 10 * i, 30 - 20 * exp(-i / 5000) >file
    }
    close(file)
  }
}'
echo "$runs runs of $records records, $(du -sh "$out/runs" | cut -f1)"
"$starling" watch "$out/runs" --listen 127.0.0.1:0 2>"$out/log" &
pid=$!
until grep -q http "$out/log"; do sleep 0.05; done
url=$(grep -o 'http://[^;]*' "$out/log")
ask() { curl -s -o "$out/answer" -w '%{time_total} s, %{size_download} bytes' "$url$1"; }
echo "first answer:            $(ask data.json)"
revision=$(grep -o '"revision":[0-9]*' "$out/answer" | head -n 1 | cut -d: -f2)
sleep 1
echo "nothing has changed:     $(ask "data.json?since=$revision")"
echo '{"schema":1,"type":"report","time":"2026-11-27T10:00:00Z","step":99999999,"loss":1}' >>"$out/runs/run-01/events.jsonl"
sleep 1
echo "one run has changed:     $(ask "data.json?since=$revision")"
echo "metrics for Prometheus:  $(ask metrics)"
echo "memory:                  $(awk '/VmHWM/ { print $2 / 1024 " MiB at most" }' "/proc/$pid/status")"
start=$(date +%s.%N)
"$starling" watch "$out/runs" --once "$out/report.html"
took=$(awk -v a="$start" -v b="$(date +%s.%N)" 'BEGIN { printf "%.1f s", b - a }')
echo "report:                  $took, $(stat -c %s "$out/report.html") bytes"
chromium=$(command -v chromium || command -v google-chrome || true)
if [[ -n $chromium ]]; then
  cat >>"$out/report.html" <<'END'
<script>
starlingWatch.update(JSON.parse(document.getElementById("report").textContent));
document.title = "drawn in " + starlingWatch.lastUpdateMs + " ms";
</script>
END
  echo "page, all runs again:    $("$chromium" --headless --no-sandbox --disable-gpu --user-data-dir="$out/profile" --dump-dom \
    --virtual-time-budget=5000 "file://$out/report.html" 2>/dev/null | grep -o '<title>[^<]*' | cut -c8-)"
fi
