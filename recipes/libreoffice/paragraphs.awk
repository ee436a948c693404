# From pages of LibreOffice's help: a line "file#paragraph<tab>text" for each paragraph and heading that has a name and one line.
match($0, /<(p|h[1-6]) id="[a-z]+_id[0-9]+"[^>]*>/) {
  tag = substr($0, RSTART, RLENGTH); line = substr($0, RSTART + RLENGTH)
  end = index(line, "</p>"); if (end == 0) end = match(line, /<\/h[1-6]>/)
  if (end == 0) next
  line = substr(line, 1, end - 1)
  match(tag, /id="[^"]*"/); name = substr(tag, RSTART + 4, RLENGTH - 5)
  gsub(/<[^>]*>/, "", line); gsub(/&nbsp;/, " ", line); gsub(/&lt;/, "<", line); gsub(/&gt;/, ">", line); gsub(/&quot;/, "\"", line)
  gsub(/&amp;/, "\\&", line); gsub(/\t/, " ", line); gsub(/^ +| +$/, "", line); gsub(/  +/, " ", line)
  if (line != "" && line !~ /&#/) print FILENAME "#" name "\t" line
}
