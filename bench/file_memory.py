"""How much memory does the translation of files take? Makes for each format a file of many short texts, twice: of numbers, which no model
sees, so that parsing alone is measured; and of words in a part of the texts. Translates both and prints the peak of memory, minus that of a
tiny file of the format, as a multiple of the bytes (of archives: unpacked). Ends with 1 if one takes more than twice its bytes and 50 MiB.

Usage: bench/file_memory.py STARLING MODEL [--megabytes 20] [--words 0.002] [--formats json,docx]
       (bench/file_memory.py build/release/starling tests/fixtures/models/pre/model)
"""

import argparse
import io
import os
import random
import sys
import tempfile
import zipfile

SPARE = 50 << 20  # bytes


def times(i):
    return "{:02}:{:02}:{:02}".format(i // 3600 % 100, i // 60 % 60, i % 60)


# For each format what begins a file, a text with its number, and what ends the file.
TEXTS = {
    "txt": ("", lambda i, t: f"{t}\n", ""),
    "html": ("<html><body>\n", lambda i, t: f"<p>{t}</p>\n", "</body></html>\n"),
    "xml": ("<?xml version=\"1.0\"?>\n<a>\n", lambda i, t: f"<p>{t}</p>\n", "</a>\n"),
    "md": ("", lambda i, t: f"{t}\n\n", ""),
    "srt": ("", lambda i, t: f"{i + 1}\n{times(i)},000 --> {times(i)},900\n{t}\n\n", ""),
    "vtt": ("WEBVTT\n\n", lambda i, t: f"{times(i)}.000 --> {times(i)}.900\n{t}\n\n", ""),
    "po": ('msgid ""\nmsgstr "Content-Type: text/plain; charset=UTF-8\\n"\n', lambda i, t: f'\nmsgid "{t}"\nmsgstr ""\n', ""),
    "json": ("{\n", lambda i, t: f'"k{i}": "{t}",\n', '"end": ""}\n'),
    "xcstrings": ('{"sourceLanguage":"en","strings":{\n', lambda i, t: f'"{t} {i}":{{}},\n', '"":{}}}\n'),
    "yaml": ("", lambda i, t: f'k{i}: "{t}"\n', ""),
    "properties": ("", lambda i, t: f"k{i}={t}\n", ""),
    "strings": ("", lambda i, t: f'"k{i}" = "{t}";\n', ""),
    "android": ("<resources>\n", lambda i, t: f'<string name="k{i}">{t}</string>\n', "</resources>\n"),
    "resx": ("<root>\n", lambda i, t: f'<data name="k{i}"><value>{t}</value></data>\n', "</root>\n"),
    "ts": ('<!DOCTYPE TS>\n<TS version="2.1">\n<context>\n',
           lambda i, t: f'<message><source>{t}</source><translation type="unfinished"/></message>\n', "</context>\n</TS>\n"),
    "xlf": ('<xliff version="1.2"><file source-language="en"><body>\n',
            lambda i, t: f'<trans-unit id="{i}"><source>{t}</source></trans-unit>\n', "</body></file></xliff>\n"),
}
ENDINGS = {"android": "xml"}

W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
S = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
D = "urn:oasis:names:tc:opendocument:xmlns:"
# Of archives the part with the texts, and other parts.
PARTS = {
    "docx": ("word/document.xml", f'<w:document xmlns:w="{W}"><w:body>',
             lambda i, t: f"<w:p><w:r><w:rPr><w:b/></w:rPr><w:t>{t}</w:t></w:r></w:p>", "</w:body></w:document>",
             {"[Content_Types].xml": '<Types><Override PartName="/word/document.xml" ContentType="application/vnd.openxmlformats-'
                                     'officedocument.wordprocessingml.document.main+xml"/></Types>'}),
    "xlsx": ("xl/sharedStrings.xml", f'<sst xmlns="{S}">', lambda i, t: f"<si><t>{t}</t></si>", "</sst>",
             {"[Content_Types].xml": '<Types><Override PartName="/xl/workbook.xml" ContentType="application/vnd.openxmlformats-'
                                     'officedocument.spreadsheetml.sheet.main+xml"/><Override PartName="/xl/sharedStrings.xml" '
                                     'ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.sharedStrings+xml"/>'
                                     "</Types>",
              "xl/workbook.xml": f'<workbook xmlns="{S}"/>'}),
    "odt": ("content.xml", f'<o:document-content xmlns:o="{D}office:1.0" xmlns:text="{D}text:1.0"><o:body><o:text>',
            lambda i, t: f"<text:p>{t}</text:p>", "</o:text></o:body></o:document-content>",
            {"mimetype": "application/vnd.oasis.opendocument.text"}),
    "epub": ("a.xhtml", '<html xmlns="http://www.w3.org/1999/xhtml"><body>', lambda i, t: f"<p>{t}</p>\n", "</body></html>",
             {"mimetype": "application/epub+zip",
              "META-INF/container.xml": '<container><rootfiles><rootfile full-path="b.opf"/></rootfiles></container>',
              "b.opf": '<package xmlns="http://www.idpf.org/2007/opf"><manifest><item href="a.xhtml" id="a" '
                       'media-type="application/xhtml+xml"/></manifest></package>'}),
}


def text(r, words):
    number = str(r.randrange(10**4, 10**6))
    return f"A dog runs {number}" if r.random() < words else number


def content(parts, size, words):
    """Returns the text of a file of about this size."""
    begin, each, end = parts
    r = random.Random(1)
    out = io.StringIO()
    out.write(begin)
    i = 0
    while out.tell() < size or i == 0:
        out.write(each(i, text(r, words)))
        i += 1
    out.write(end)
    return out.getvalue()


def write_file(folder, kind, size, words):
    """Returns the path and the bytes of the text, unpacked."""
    path = os.path.join(folder, f"{size}.{ENDINGS.get(kind, kind)}")
    if kind in TEXTS:
        inner = content(TEXTS[kind], size, words)
        with open(path, "w", encoding="utf-8") as f:
            f.write(inner)
        return path, len(inner)
    name, begin, each, end, others = PARTS[kind]
    inner = content((begin, each, end), size, words)
    with zipfile.ZipFile(path, "w") as archive:
        for other, bytes_of in others.items():
            archive.writestr(other, bytes_of)
        archive.writestr(name, inner, zipfile.ZIP_DEFLATED)
    return path, len(inner) + sum(map(len, others.values()))


def peak(starling, model, path, out):
    """Returns the most memory that a translation held at a time, in bytes, and its seconds."""
    import time
    begun = time.time()
    child = os.spawnv(os.P_NOWAIT, starling, [starling, "translate", "--model", model, "--document", "--quiet", "--threads", "1",
                                              "--beam", "1", "-i", path, "-o", out])
    _, status, used = os.wait4(child, 0)
    if status != 0:
        sys.exit(f"{path}: starling ended with {status}")
    return used.ru_maxrss << 10, time.time() - begun


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("starling")
    parser.add_argument("model")
    parser.add_argument("--megabytes", type=float, default=20)
    parser.add_argument("--words", type=float, default=0.002, help="share of the texts that have words")
    parser.add_argument("--formats", default=",".join(list(TEXTS) + list(PARTS)))
    a = parser.parse_args()
    size, bad = int(a.megabytes * 2**20), []
    print(f"{'format':12}{'bytes':>12}   numbers only        with words")
    for kind in a.formats.split(","):
        line = ""
        for words in (0, a.words):
            with tempfile.TemporaryDirectory() as folder:
                out = os.path.join(folder, "out")
                tiny, _ = write_file(folder, kind, 1 << 16, 0.2)  # of as many sentences as a model translates at once
                least, _ = peak(a.starling, a.model, tiny, out)
                path, unpacked = write_file(folder, kind, size, words)
                most, seconds = peak(a.starling, a.model, path, out)
                more = most - least
                line += f"{more / unpacked:8.2f} x {seconds:5.1f} s"
                if more > 2 * unpacked + SPARE:
                    bad.append(kind)
                    line += " !"
        print(f"{kind:12}{unpacked:12}{line}", flush=True)
    if bad:
        sys.exit("more than twice the bytes and 50 MiB: " + ", ".join(dict.fromkeys(bad)))


if __name__ == "__main__":
    main()
