"""Does a translation change anything besides texts? Writes random files of every format, with random layout, white space, line ends, byte
order marks, comments, attributes, quotes and escapes, has bench_change_files put other texts into them, and compares by parsers that are
not ours: Python's of JSON, YAML, XML, HTML and zip, and msgfmt. Checks for each file that

- with every sentence left as it is, the file (of an archive every member) comes back byte for byte; .po, .ts, XLIFF and
  .xcstrings, which get translations beside their sources, keep all that they had;
- with sentences in capitals, the structure is the same and the texts differ by capitals only;
- with sentences that have quotes, marks, backslashes and the like added, the structure is the same and each text is there.

Ends with 1 if a file fails, and keeps it. Usage: bench/random_files.py BENCH_CHANGE_FILES [--files 1000] [--formats json,docx] [--seed 1]
"""

import argparse
import io
import random
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections import Counter
from pathlib import Path

from random_documents import archives, messages, plain_files, xml_files
from random_documents.words import HARD, has_letter

# What makes a file, what views it, and whether translations stand beside their sources.
FORMATS = {
    "text": (plain_files.make_text, plain_files.view_text, False),
    "json": (messages.make_json, messages.view_json, False),
    "xcstrings": (messages.make_catalog, messages.view_catalog, True),
    "yaml": (messages.make_yaml, messages.view_yaml, False),
    "properties": (messages.make_properties, messages.view_properties, False),
    "strings": (messages.make_strings, messages.view_strings, False),
    "android": (xml_files.make_android, xml_files.xml_view(xml_files.android_text, xml_files.android_value), False),
    "resx": (xml_files.make_resx, xml_files.xml_view(lambda e: e.tag == "value"), False),
    "xml": (xml_files.make_xml, xml_files.xml_view(lambda e: e.tag == "p"), False),
    "qt": (xml_files.make_ts, xml_files.view_ts, True),
    "xliff": (xml_files.make_xlf, xml_files.view_xlf, True),
    "po": (plain_files.make_po, plain_files.view_po, True),
    "srt": (lambda r: plain_files.make_subtitles(r, False), plain_files.view_subtitles, False),
    "vtt": (lambda r: plain_files.make_subtitles(r, True), plain_files.view_subtitles, False),
    "markdown": (plain_files.make_md, plain_files.view_md, False),
    "html": (plain_files.make_html, plain_files.view_html, False),
    "docx": (archives.make_docx, archives.view_archive(r"word/document\.xml", ("p",)), False),
    "pptx": (archives.make_pptx, archives.view_archive(r"ppt/slides/.*", ("p",)), False),
    "xlsx": (archives.make_xlsx, archives.view_archive(r"xl/sharedStrings\.xml", ("si",)), False),
    "odt": (archives.make_odt, archives.view_archive(r"content\.xml", ("p", "h")), False),
    "ods": (archives.make_ods, archives.view_archive(r"content\.xml", ("p", "h")), False),
    "odp": (archives.make_odp, archives.view_archive(r"content\.xml", ("p", "h")), False),
    "epub": (archives.make_epub, archives.view_archive(r"a\.xhtml", None), False),
}
NAMES = {"srt": "subtitles", "vtt": "subtitles"}
# What changes though no sentence does: the name of the language.
LANGUAGE = {"yaml": (b"en:", b"pl:"), "docx": (b'<w:lang w:val="en-US"/>', b'<w:lang w:val="pl"/>')}
IN_ARCHIVE = ("docx", "pptx", "xlsx", "odt", "ods", "odp", "epub")


MOVING = r"</?[bi]>|\{n\}"


def letters(s):
    """What a text says, without the spaces and the marks of its syntax. Tags and arguments within it may move by a word, since the stand-in
    of a model does not say which word is from where; where there is one too many or too few, structures differ."""
    return re.sub(MOVING + r"|[\s\"'’]+", "", s).upper()


def is_changed(source, target, change, sorted_words=False):
    """Returns whether a text says what it should: the same in capitals, or what it said with additions."""
    tags = [sorted(re.findall(MOVING, s)) for s in (source, target)]
    before, after = letters(source), letters(target)
    if tags[0] != tags[1]:
        return False
    if change != "hard" or not has_letter(before):
        return before == after
    if sorted_words:
        was, now = (Counter(re.sub("[É中]", " ", s).split()) for s in (source, target))
        return not was - now
    # A placeholder may move by some words, too.
    return not Counter(before) - Counter(after) and any(letters(h) in after for h in HARD)


def members(data):
    with zipfile.ZipFile(io.BytesIO(data)) as z:
        return [(i.filename, z.read(i)) for i in z.infolist()]


def in_target_language(kind, data):
    if kind in LANGUAGE:
        return data.replace(*LANGUAGE[kind], 1 if kind == "yaml" else -1)
    return data


def differences(kind, before, after, change):
    """Returns what is wrong with a translated file."""
    _, view, beside = FORMATS[kind]
    if change == "same" and kind in IN_ARCHIVE:
        there = [(name, in_target_language(kind, content)) for name, content in members(before)]
        return "" if there == members(after) else "members differ though no sentence does"
    if change == "same" and not beside:
        return "" if in_target_language(kind, before) == after else "bytes differ though no sentence does"
    try:
        (was, texts), (now, done) = view(before), view(after)
    except Exception as e:
        return f"{type(e).__name__}: {e}"
    if beside:
        if kind == "po" and now[0]:
            return f"msgfmt: {now[0]}"
        if kind == "qt":
            strip = lambda s: [[(tag, [] if tag == "translation" else a, t) for tag, a, t in m] for m in s[0]]
            if strip(was) != strip(now) or was[1] != now[1]:
                return "the structure differs"
        elif was != now:
            return f"the structure differs: {was} became {now}"
        for (source, _), (source_now, target) in zip(done if kind in ("po", "xcstrings") else texts, done):
            if source != source_now:
                return f"the source {source!r} became {source_now!r}"
            if target and target not in ("Pies", "A dog") and not (
                    is_changed(source, target, change) or is_changed(source + " s", target, change)):  # the plural in a catalogue
                return f"{source!r} became {target!r}"
        return ""
    if was != now:
        return f"the structure differs: {was} became {now}"
    if len(texts) != len(done):
        return "there are more texts, or fewer"
    if kind in ("srt", "vtt"):
        texts, done = [" ".join(texts)], [" ".join(done)]  # sentences go on in the next cue
    for t, d in zip(texts, done):
        if not is_changed(t, d, change, kind == "markdown"):
            return f"{t!r} became {d!r}"
    return ""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--files", type=int, default=1000)
    parser.add_argument("--formats", default=",".join(FORMATS))
    parser.add_argument("--seed", type=int, default=1)
    a = parser.parse_args()
    folder, failed = Path(tempfile.mkdtemp(prefix="random_files_")), 0
    for kind in a.formats.split(","):
        r = random.Random(f"{kind} {a.seed}")
        files, orders = [], []
        for i in range(a.files):
            data = FORMATS[kind][0](r)
            path = folder / f"{kind}{i}"
            path.write_bytes(data)
            for change in ("same", "capitals", "hard"):
                files.append((data, path, change))
                orders.append(f"{NAMES.get(kind, kind)}\t{path}\t{path}.{change}\t{change}")
        done = subprocess.run([a.program], input="\n".join(orders) + "\n", capture_output=True, text=True)
        answers = done.stdout.splitlines()
        wrong = [f"the program ended with {done.returncode} after {len(answers)} files"] if len(answers) < len(files) else []
        for (data, path, change), answer in zip(files, answers):
            why = answer if answer != "ok" else differences(kind, data, Path(f"{path}.{change}").read_bytes(), change)
            if why:
                wrong.append(f"{path}.{change}: {why}")
        print(f"{kind:12}{a.files:6} files, {len(wrong)} failures", flush=True)
        for line in wrong[:5]:
            print("   ", line[:600])
        failed += len(wrong)
        for (_, path, change) in files if not wrong else ():
            Path(f"{path}.{change}").unlink()
            path.unlink(missing_ok=True)
    if failed:
        sys.exit(f"{failed} failures; the files are in {folder}")
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
