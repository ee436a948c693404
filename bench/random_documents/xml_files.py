"""XML, and messages in it: Android's, .resx, Qt's .ts and XLIFF."""

import re
import xml.etree.ElementTree as ET

from .words import blanks, ends, has_letter, sentence, text


def xml_text(r, s):
    out = ""
    for c in s:
        if c in "&<>":
            out += {"&": "&amp;", "<": "&lt;", ">": "&gt;"}[c]
        elif ord(c) > 127 and r.random() < 0.2:
            out += r.choice([f"&#{ord(c)};", f"&#x{ord(c):x};"])
        else:
            out += c
    return out


def attributes(r, *given):
    some = list(given) + [f"x{i}={r.choice(['{0}b &amp; c{0}', '{0}{0}', '{0}a > b{0}']).format(q)}"
                          for i in range(r.randrange(3)) if r.random() < 0.3 for q in [r.choice("\"'")]]
    r.shuffle(some)
    return "".join(r.choice([" ", "  ", "\n    "]) + a for a in some) + r.choice(["", "", " "])


def quoted(r, name, value):
    q = r.choice("\"'")
    return f"{name}{r.choice(['=', '=', ' = '])}{q}{value}{q}"


def comment(r):
    return f"<!-- {sentence(r)} <b> & -->" if r.random() < 0.2 else ""


def inline(r, s, tags):
    """Puts tags around words, or between them."""
    words = xml_text(r, s).split(" ")
    if has_letter(s) and len(words) > 3 and tags and r.random() < 0.4:
        i = r.randrange(len(words) - 1)
        open_, close = r.choice(tags)
        words[i] = open_ + words[i] + close
    return " ".join(words)


def make_android(r):
    out = r.choice(['<?xml version="1.0" encoding="utf-8"?>\n', "", "<?xml version='1.0'?>"])
    out += f"<resources{attributes(r, quoted(r, 'xmlns:tools', 'urn:t'))}>"
    tags = [("<b>", "</b>"), ("<i>", "</i>"), ('<xliff:g id="n" xmlns:xliff="urn:x">', "</xliff:g>"), ("", "<br/>")]

    def value(odd=True):
        s = text(r, odd)
        v = inline(r, s, tags)
        if r.random() < 0.2:
            v += r.choice(["\\n", " \\'so\\' ", " \\u00e9 "]) + "12"
        return v

    for i in range(r.randrange(1, 10)):
        out += blanks(r) + comment(r)
        kind = r.random()
        if kind < 0.6:
            out += f"<string{attributes(r, quoted(r, 'name', f'k{i}'))}>{value()}</string >"
        elif kind < 0.7:
            out += f"<string{attributes(r, quoted(r, 'name', f'k{i}'), quoted(r, 'translatable', 'false'))}>{value()}</string>"
        elif kind < 0.8:
            items = "".join(f"{blanks(r)}<item>{value()}</item>" for _ in range(r.randrange(3)))
            out += f"<string-array{attributes(r, quoted(r, 'name', f'k{i}'))}>{items}{blanks(r)}</string-array>"
        elif kind < 0.9:
            items = "".join(f'{blanks(r)}<item quantity="{q}">{value()}</item>' for q in ("one", "few", "many", "other"))
            out += f"<plurals{attributes(r, quoted(r, 'name', f'k{i}'))}>{items}\n</plurals>"
        else:
            out += f'<color name="c{i}">#ff00ff</color><style name="s{i}"><item name="x">Bold text</item></style>'
    return ends(r, out + blanks(r) + "</resources>" + blanks(r))


def make_resx(r):
    out = '<?xml version="1.0"?>\n<root>' + comment(r)
    for i in range(r.randrange(1, 10)):
        kind = r.random()
        extra = [quoted(r, "type", "System.Drawing.Point")] if kind < 0.15 else [quoted(r, "xml:space", "preserve")]
        note = f"{blanks(r)}<comment>{sentence(r)}</comment>" if r.random() < 0.3 else ""
        value = "1, 2" if kind < 0.15 else xml_text(r, text(r))
        out += (f"{blanks(r)}<data{attributes(r, quoted(r, 'name', f'k{i}'), *extra)}>{blanks(r)}<value>{value}</value>{note}{blanks(r)}"
                f"</data>{comment(r)}")
    return ends(r, out + "\n</root>\n")


def android_value(s):
    """Returns what a value of Android's says: without the quotes around it, and with its escapes resolved."""
    def resolved(m):
        return chr(int(m[2], 16)) if m[2] else {"n": "\n", "t": "\t"}.get(m[1], m[1]) if m[1] else ""
    return re.sub(r'\\(u([0-9a-fA-F]{4})|.)|"', resolved, s, flags=re.S)


def xml_view(translated, value=str):
    """Returns a view: elements with attributes, and comments. The content of `translated` elements is text, which `value` reads."""

    def view(data):
        root = ET.fromstring(data)
        structure, texts = [], []

        def walk(e):
            structure.append((e.tag, sorted(e.attrib.items())))
            if translated(e):
                texts.append(value("".join(e.itertext())))
                structure.append(sorted((i.tag, sorted(i.attrib.items())) for i in e.iter() if i is not e))
                return
            structure.append((e.text or "").strip())
            for child in e:
                walk(child)

        walk(root)
        comments = re.findall(rb"<!--.*?-->", data, re.S)
        return (structure, comments), texts

    return view


def android_text(e):
    return (e.tag == "string" and e.get("translatable") != "false") or (e.tag == "item" and e.get("name") is None)


def make_ts(r):
    out = r.choice(['<?xml version="1.0" encoding="utf-8"?>\n', ""])
    out += f"<!DOCTYPE TS>\n<TS{attributes(r, quoted(r, 'version', '2.1'))}>" + "<context>\n<name>Window</name>"
    for i in range(r.randrange(1, 10)):
        place = f'{blanks(r)}<location filename="a.cpp" line="{i}"/>' if r.random() < 0.5 else ""
        note = f"<extracomment>{sentence(r)}</extracomment>" if r.random() < 0.3 else ""
        s = xml_text(r, text(r) or "A dog")
        translation = r.choice(['<translation type="unfinished"></translation>', "<translation type='unfinished'/>",
                                "<translation>Pies</translation>", '<translation type="vanished">Pies</translation>'])
        out += f"{blanks(r)}<message>{place}{blanks(r)}<source>{s}</source>{note}{blanks(r)}{translation}{blanks(r)}</message>{comment(r)}"
    return ends(r, out + "\n</context></TS>\n")


def view_ts(data):
    root = ET.fromstring(data)
    structure, texts = [], []
    for m in root.iter("message"):
        t = m.find("translation")
        source = m.find("source").text or ""
        structure.append([(e.tag, sorted(e.attrib.items()), e.text if e.tag != "translation" else "") for e in m])
        texts.append((source, t.text or ""))
    return (structure, re.findall(rb"<!--.*?-->", data, re.S)), texts


def make_xlf(r):
    out = f"<?xml version='1.0'?>\n<xliff{attributes(r, quoted(r, 'version', '1.2'))}>{comment(r)}<file" + attributes(
        r, quoted(r, "original", "a"), quoted(r, "source-language", "en")) + "><body>"
    tags = [('<g id="1">', "</g>"), ("", '<x id="2"/>'), ('<bpt id="3">&lt;b></bpt>', '<ept id="3">&lt;/b></ept>'),
            ('<ph id="4">{n}</ph>', "")]
    for i in range(r.randrange(1, 10)):
        target = r.choice(["", "", "<target/>", "<target></target>", "<target>Pies</target>", '<target state="new">A dog</target>'])
        note = f"{blanks(r)}<note>{sentence(r)}</note>" if r.random() < 0.3 else ""
        left = [quoted(r, "translate", "no")] if r.random() < 0.1 else []
        out += (f"{blanks(r)}<trans-unit{attributes(r, quoted(r, 'id', i), *left)}>{blanks(r)}<source>{inline(r, text(r), tags)}</source>"
                f"{blanks(r)}{target}{note}{blanks(r)}</trans-unit>{comment(r)}")
    return ends(r, out + "</body></file></xliff>")


def view_xlf(data):
    root = ET.fromstring(data)
    structure, texts = [], []
    for u in root.iter("trans-unit"):
        source, target = u.find("source"), u.find("target")
        source.tail = None
        structure.append((sorted(u.attrib.items()), [e.tag for e in u if e.tag != "target"], ET.tostring(source)))
        goes = u.get("translate") != "no" and has_letter("".join(source.itertext()))
        texts.append(("".join(source.itertext()), "" if target is None else "".join(target.itertext())))
        if goes and target is not None and target.get("state") == "needs-review-translation":
            inner = lambda e: sorted((i.tag, sorted(i.attrib.items())) for i in e.iter() if i is not e)
            if inner(source) != inner(target):
                structure.append("elements of the target differ from those of the source")
    return (structure, re.findall(rb"<!--.*?-->", data, re.S)), texts


def make_xml(r):
    tags = [("<b>", "</b>"), ('<a href="x?a=1&amp;b=2">', "</a>"), ("<i x='1'>", "</i>")]
    out = r.choice(['<?xml version="1.0"?>\n', ""]) + f"<doc{attributes(r)}>{comment(r)}"
    for _ in range(r.randrange(1, 9)):
        out += f"{blanks(r)}<p{attributes(r)}>{blanks(r)}{inline(r, text(r), tags)}{blanks(r)}</p>{comment(r)}<e{attributes(r)}/>"
    return ends(r, out + "</doc>", bom=False)
