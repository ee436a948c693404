# From msgunfmt --no-wrap: a line "English<tab>translation" for each message, without the marks of access keys ("~", "_", "(~F)").
function text(line) {
  sub(/^msg(id|str) "/, "", line); sub(/"$/, "", line)
  gsub(/\\"/, "\"", line); gsub(/\\[nt]/, " ", line); gsub(/\\\\/, "\\", line)
  gsub(/ ?\([~_][A-Za-z0-9]\)/, "", line); gsub(/[~_]/, "", line)
  gsub(/^ +| +$/, "", line); gsub(/  +/, " ", line)
  return line
}
/^msgid "/ { english = text($0) }
/^msgstr "/ { if (english != "" && text($0) != "") print english "\t" text($0); english = "" }
