#!/usr/bin/env bash
# Starts `starling serve` behind the proxies of this directory (those of nginx and Caddy that are installed), on loopback with certificates
# made here, and checks what clients get through them. Needs curl and openssl; ends with status 1 if a check fails.
# Usage: packaging/try_proxies.sh STARLING MODEL     (a model from English to German)
set -uo pipefail
starling=$(realpath "${1:?usage: try_proxies.sh STARLING MODEL}") model=$(realpath "${2:?usage: try_proxies.sh STARLING MODEL}")
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
started=() failed=0
end() {
  for process in "${started[@]}"; do kill "$process" 2>/dev/null; done
  wait 2>/dev/null
  rm -rf "$work"
}
trap end EXIT

check() {  # what, wanted, found
  if [[ $2 == "$3" ]]; then
    echo "  ok      $1"
  else
    echo "  FAILED  $1: wanted '$2', found '$3'"
    failed=1
  fi
}
wait_for() {  # seconds, command...
  local tries=$(($1 * 20))
  shift
  while ! "$@" >/dev/null 2>&1; do
    ((tries-- > 0)) || return 1
    sleep 0.05
  done
}
metric() { curl -s "$direct/metrics" | awk -v name="$1" '$1 == name { print $2 }'; }
last_client() { tail -n 1 "$work/access" | sed -n 's/.*"client":"\([^"]*\)".*/\1/p'; }
logged() { grep -c "\"status\":$1" "$work/access"; }
# Connections that are open at the server, which nobody uses now.
open_connections() {
  local hex
  hex=$(printf ':%04X' "${direct##*:}")
  awk -v port="$hex" '$2 ~ port "$" && $4 == "01"' /proc/net/tcp | wc -l
}

serve() {
  "$starling" serve --model "en-de=$model" --listen "${1:-127.0.0.1:0}" --trust-proxy 127.0.0.1 --cache-mib 0 --access-log "$work/access" \
    2>"$work/log" &
  server=$!
  started+=("$server")
  wait_for 60 grep -q '^listening at' "$work/log" || { cat "$work/log"; exit 1; }
  direct=$(sed -n 's/^listening at //p' "$work/log")
}

# Checks a proxy at an address.
checks() {
  local at=$1 expected body fields=(-d source=en -d target=de)
  local ask=(curl -sk --max-time 60 "$at/translate")
  expected=$(curl -s "$direct/translate" "${fields[@]}" --data-urlencode 'q=a house & a dog')
  check "form" "$expected" "$("${ask[@]}" "${fields[@]}" --data-urlencode 'q=a house & a dog')"
  check "multipart" "$expected" "$("${ask[@]}" -F source=en -F target=de -F 'q=a house & a dog')"
  check "JSON" "$expected" \
    "$("${ask[@]}" -H 'Content-Type: application/json' -d '{"source":"en","target":"de","q":"a house & a dog"}')"
  check "metrics are not shown to everybody" 403 "$(curl -sk -o "$work/out" -w '%{http_code}' "$at/metrics")"

  head -c 1500000 /dev/zero | tr '\0' x >"$work/large"
  check "a body of 1.5 MB: the server's refusal" '{"error":"the request is larger than 1048576 bytes; send it in parts"} 413' \
    "$(curl -sk -w ' %{http_code}' "$at/translate" -H 'Content-Type: text/plain' --data-binary "@$work/large")"
  head -c 30000000 /dev/zero | tr '\0' x >"$work/large"
  check "a body of 30 MB" 413 "$(curl -sk -o "$work/out" -w '%{http_code}' "$at/translate" -H 'Content-Type: text/plain' \
    --data-binary "@$work/large")"
  check "which is told in JSON" '{"error":' "$(head -c 9 "$work/out")"

  curl -sk --interface 127.0.0.5 "$at/health" -o "$work/out"
  check "the client's address in the access log" 127.0.0.5 "$(last_client)"
  curl -sk --interface 127.0.0.5 -H 'X-Forwarded-For: 6.6.6.6' "$at/health" -o "$work/out"
  check "whatever the client writes" 127.0.0.5 "$(last_client)"

  curl -sk "$at/health" "$at/health" "$at/health" -o "$work/out" -o "$work/out" -o "$work/out"
  check "connections to the server are kept" yes "$( (($(open_connections) >= 1)) && echo yes || echo no)"

  # A client that hangs up in the middle of much work.
  body=$(awk 'BEGIN { for (i = 0; i < 4000; ++i) print "a man in a red shirt is standing in front of the house number " i " and looks at a dog ." }')
  local gone
  gone=$(logged 499)
  printf '%s' "$body" >"$work/large"
  curl -sk --max-time 0.7 "$at/translate" "${fields[@]}" --data-urlencode "q@$work/large" -o "$work/out"
  wait_for 5 bash -c "(( \$(grep -c '\"status\":499' '$work/access') > $gone ))"
  check "the work of a client that hangs up is dropped" "$((gone + 1)) 0" "$(logged 499) $(metric starling_queue_sentences)"

  # A stream: its first sentence is there while the server works on the last; what --max-time cuts off is cancelled.
  gone=$(logged 499)
  curl -skN --max-time 0.7 "$at/translate" "${fields[@]}" -d stream=true --data-urlencode "q@$work/large" -o "$work/out"
  check "a stream's first event comes at once" "event: more" "$(grep -m 1 '^event: more' "$work/out")"
  check "and not the last" "" "$(grep '^event: done' "$work/out")"
  wait_for 5 bash -c "(( \$(grep -c '\"status\":499' '$work/access') > $gone ))"
  check "the work of a stream whose client hangs up is dropped" "$((gone + 1)) 0" "$(logged 499) $(metric starling_queue_sentences)"

  # The server is restarted.
  local address=${direct#http://}
  kill "$server" && wait "$server"
  check "the server ends in order" 0 $?
  check "while it is away" '{"error":"the server is being started; try again soon"} 503' "$("${ask[@]}" -w ' %{http_code}' "${fields[@]}" -d q=x)"
  serve "$address"
  check "and when it is back" "$expected" "$("${ask[@]}" "${fields[@]}" --data-urlencode 'q=a house & a dog')"
}

serve
port=$((20000 + RANDOM % 10000))
if command -v nginx >/dev/null; then
  nginx -v
  openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=translate.example.org -keyout "$work/key" -out "$work/pem" 2>/dev/null
  {
    echo "daemon off; pid $work/pid; error_log $work/error; events {}"
    echo "http { access_log off; client_body_temp_path $work/b; proxy_temp_path $work/p; fastcgi_temp_path $work/f; uwsgi_temp_path $work/u; scgi_temp_path $work/s;"
    sed -e "s/127.0.0.1:5000/${direct#http://}/" -e "s/listen 443/listen 127.0.0.1:$port/" -e '/listen \[::\]/d' \
      -e "s|/etc/ssl/certs/.*pem|$work/pem|" -e "s|/etc/ssl/private/.*key|$work/key|" "$here/nginx.conf"
    echo "}"
  } >"$work/nginx.conf"
  chmod 755 "$work"
  nginx -e "$work/error" -c "$work/nginx.conf" &
  started+=($!)
  wait_for 20 curl -sk "https://127.0.0.1:$port/health" || cat "$work/error"
  checks "https://127.0.0.1:$port"
else
  echo "nginx: not installed, skipped"
fi
port=$((port + 1))
if command -v caddy >/dev/null; then
  echo "caddy $(caddy version)"
  {
    echo "{"
    echo "  admin off"
    echo "  skip_install_trust"
    echo "  auto_https disable_redirects"
    echo "}"
    sed -e "s/127.0.0.1:5000/${direct#http://}/" -e "s/^translate.example.org {/https:\/\/127.0.0.1:$port {\n\ttls internal/" "$here/Caddyfile"
  } >"$work/Caddyfile"
  XDG_DATA_HOME=$work/caddy XDG_CONFIG_HOME=$work/caddy caddy run --adapter caddyfile --config "$work/Caddyfile" 2>"$work/caddy.log" &
  started+=($!)
  wait_for 20 curl -sk "https://127.0.0.1:$port/health" || cat "$work/caddy.log"
  checks "https://127.0.0.1:$port"
else
  echo "caddy: not installed, skipped"
fi
exit $failed
