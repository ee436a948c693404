"""Plain text, catalogues of gettext, subtitles, Markdown and HTML."""

import gettext
import io
import re
import subprocess
from html.parser import HTMLParser

from .words import blanks, ends, sentence, text
from .xml_files import attributes, comment, inline


def po_string(r, s, many):
    escaped = s.replace("\\", "\\\\").replace('"', '\\"')
    if many and " " in escaped and r.random() < 0.3:
        first, rest = escaped.split(" ", 1)
        return f'""\n"{first} "\n"{rest}"'
    return f'"{escaped}"'


def make_po(r):
    out = "# " + sentence(r) + '\nmsgid ""\nmsgstr ""\n"Content-Type: text/plain; charset=UTF-8\\n"\n"Language: pl\\n"\n'
    out += '"Plural-Forms: nplurals=3; plural=(n==1 ? 0 : n%10>=2 && n%10<=4 && (n%100<10 || n%100>=20) ? 1 : 2);\\n"\n'
    for i in range(r.randrange(1, 10)):
        out += "\n"
        if r.random() < 0.3:
            out += r.choice(["# ", "#. ", "#: a.c:"]) + r.choice(["12", sentence(r)]) + "\n"
        if r.random() < 0.2:
            out += "#, " + r.choice(["no-wrap", "python-format", "c-format"]) + "\n"
        s = f"{i} " + sentence(r, False).replace("...", "") + r.choice(["", ' "q"', " \\ x"])
        if r.random() < 0.2:
            out += f'msgctxt "c{i}"\n'
        if r.random() < 0.2:
            out += f'msgid {po_string(r, s, True)}\nmsgid_plural {po_string(r, s + " s", True)}\n'
            out += 'msgstr[0] ""\nmsgstr[1] ""\n' + r.choice(["", 'msgstr[2] ""\n'])
        else:
            out += f'msgid {po_string(r, s, True)}\nmsgstr {r.choice([chr(34) * 2, chr(34) * 2, chr(34) + "Pies" + chr(34)])}\n'
    return ends(r, out, bom=False)


def view_po(data):
    """msgfmt says what is wrong, and compiles what Python reads; the lines of sources and comments have to stay."""
    done = subprocess.run(["msgfmt", "-c", "--use-fuzzy", "-o", "/dev/stdout", "-"], input=data, capture_output=True)
    wrong = [] if done.returncode == 0 else done.stderr.decode().splitlines()
    wrong = [w for w in wrong if "header field" not in w and "accelerator" not in w and "fatal error" not in w]
    lines = [line for line in data.decode().replace("\r", "").split("\n") if not line.startswith(("msgstr", '"', "#,"))]
    texts = []
    if done.stdout:
        for key, target in sorted(gettext.GNUTranslations(io.BytesIO(done.stdout))._catalog.items(), key=str):
            source = (key[0] if isinstance(key, tuple) else key).split("\x04")[-1]
            if source:
                texts.append((source, target))
    return (wrong, lines), texts


def make_subtitles(r, vtt):
    out = "WEBVTT" + r.choice(["", " - title"]) + "\n\n" if vtt else ""
    if vtt and r.random() < 0.3:
        out += "STYLE\n::cue { color: red }\n\n"
    for i in range(r.randrange(1, 12)):
        if vtt and r.random() < 0.2:
            out += "NOTE " + sentence(r) + "\n\n"
        dot = "." if vtt else ","
        if not vtt or r.random() < 0.5:
            out += f"{i + 1}\n"
        settings = r.choice(["", " align:start position:10%"]) if vtt else ""
        out += f"00:00:{i:02}{dot}000 --> 00:00:{i:02}{dot}900{settings}\n"
        s = text(r, False) or "12"
        if r.random() < 0.3:
            s = f"<i>{s}</i>"
        if r.random() < 0.3:
            s = s.replace(" ", "\n", 1) if not s.startswith("<") else s
        out += s + "\n" * r.choice([2, 2, 3])
    return ends(r, out)


def view_subtitles(data):
    content = data.decode("utf-8-sig").replace("\r\n", "\n")
    structure, texts = [], []
    for block in re.split(r"\n\n+", content):
        lines = block.strip("\n").split("\n")
        times = next((i for i, line in enumerate(lines) if "-->" in line), None)
        if times is None:
            structure.append(block.strip("\n"))
        else:
            structure.append(lines[:times + 1])
            texts.append(" ".join(lines[times + 1:]))
    return (structure, data.count(b"\r\n") > 0, data[:3] == b"\xef\xbb\xbf", sorted(re.findall("</?[ib]>", " ".join(texts)))), texts


def make_md(r):
    out = "---\ntitle: x y\n---\n\n" if r.random() < 0.2 else ""

    def words():
        s = sentence(r, False).split(" ")
        if len(s) > 3 and r.random() < 0.5:
            i = r.randrange(len(s) - 1)
            s[i] = r.choice(["**{}**", "*{}*", "`{}`", "[{}](https://e.org/a_b)", "<b>{}</b>", "~~{}~~", "![{} x](i.png)"]).format(s[i])
        return " ".join(s)

    for i in range(r.randrange(1, 10)):
        out += r.choice([
            lambda: "#" * r.randrange(1, 5) + " " + words(),
            lambda: words() + r.choice([" ", "\n"]) + words(),
            lambda: "\n".join(r.choice(["- ", "* "]) * 1 + words() for _ in range(2)),
            lambda: "\n".join(f"{n}. " + words() for n in (1, 2)),
            lambda: "> " + words(),
            lambda: "```py\nprint('a dog')  # yes\n```",
            lambda: words() + "\n\n    code of a dog",
            lambda: "| a dog | the cat |\n|---|:--|\n| " + words() + " | " + words() + " |",
            lambda: "<!-- " + sentence(r) + " -->",
            lambda: "***",
            lambda: "[label" + str(i) + "]: https://example.org/" + str(i),
        ])() + "\n\n"
    return ends(r, out)


def view_md(data):
    content = data.decode("utf-8-sig").replace("\r\n", "\n")
    structure = [sorted(re.findall(r"(?ms)^```.*?^```|^    .*?$|^\|[-:|]+\|$|<!--.*?-->|^\[label.*?$|^\*\*\*$", content)),
                 sorted(re.findall(r"\]\([^)]*\)", content)), content.count("<b>"), content.count("</b>"),
                 [m for m in re.findall(r"(?m)^(#+ |> |\d\. |\| )", content)], data.count(b"\r\n") > 0]
    words = re.findall(r"[^\W_]+", re.sub(r"(?m)\]\([^)]*\)|</?b>|^```[^`]*^```$", " ", content))
    return structure, [" ".join(sorted(w.upper() for w in words))]


def make_html(r):
    tags = [("<b>", "</b>"), ('<a href="x?a=1&amp;b=2">', "</a>"), ("", "<img src=i.png alt='A dog'>"), ("<code>", "</code>"),
            ("<!-- x -->", "")]
    out = r.choice(["<!DOCTYPE html>\n", ""]) + f"<html><head><title>{sentence(r)}</title><script>a < b && 'dog'</script></head><body>"
    for i in range(r.randrange(1, 10)):
        tag = r.choice(["p", "div", "h2", "li", "td", "P"])
        out += f"{blanks(r)}<{tag}{attributes(r)}>{blanks(r)}{inline(r, text(r), tags)}{blanks(r)}</{tag}>{comment(r)}"
        if r.random() < 0.1:
            out += "<pre>  The dog\n runs </pre><p translate=no>The dog</p><hr>"
    return ends(r, out + "</body></html>\n", bom=False)


class Tags(HTMLParser):
    def __init__(self):
        super().__init__()
        self.seen, self.words, self.raw = [], [], 0

    def handle_starttag(self, tag, attrs):
        self.seen.append(("open", self.get_starttag_text()))

    def handle_endtag(self, tag):
        self.seen.append(("close", tag))

    def handle_comment(self, data):
        self.seen.append(("comment", data))

    def handle_decl(self, decl):
        self.seen.append(("decl", decl))

    def handle_data(self, data):
        self.words.append(data)


def view_html(data):
    parser = Tags()
    parser.feed(data.decode())
    parser.close()
    return sorted(parser.seen), ["".join(parser.words)]


def make_text(r):
    lines = [r.choice(["", "  ", "\t"]) + text(r) + r.choice([" ", "", ""]) + "\n" for _ in range(r.randrange(1, 9))]
    return ends(r, "".join(lines), bom=False)


def view_text(data):
    lines = data.decode().split("\n")
    return [re.fullmatch(r"(\s*).*?(\s*)", line).groups() for line in lines], lines
