"""Files of messages that are neither XML nor catalogues: JSON, YAML, .properties, .strings."""

import json
import re

import yaml

from .words import blanks, ends, sentence, text


def json_string(r, s):
    out = ""
    for c in s:
        if c in '"\\':
            out += "\\" + c
        elif ord(c) < 32:
            out += {"\n": "\\n", "\t": "\\t"}.get(c, f"\\u{ord(c):04x}")
        elif c == "/" and r.random() < 0.2:
            out += "\\/"
        elif ord(c) > 127 and r.random() < 0.3:
            out += f"\\u{ord(c):04X}" if r.random() < 0.5 else f"\\u{ord(c):04x}"
        else:
            out += c
    return f'"{out}"'


def json_value(r, depth):
    kind = r.random()
    if depth < 4 and kind < 0.2:
        items = [f"{blanks(r)}{json_string(r, f'key_{i}')}{blanks(r)}:{blanks(r)}{json_value(r, depth + 1)}{blanks(r)}"
                 for i in range(r.randrange(4))]
        return "{" + (",".join(items) or blanks(r)) + "}"
    if depth < 4 and kind < 0.3:
        return "[" + ",".join(blanks(r) + json_value(r, depth + 1) + blanks(r) for _ in range(r.randrange(4))) + "]"
    if kind < 0.4:
        return r.choice(["1", "-2.5e-3", "true", "false", "null", "0"])
    s = text(r)
    if r.random() < 0.2:
        s = s.replace(" ", r.choice(["\n", " <b>x</b> ", ' "q" ', " \\ "]), 1)
    return json_string(r, s)


def make_json(r):
    body = "{" + ",".join(f"{blanks(r)}{json_string(r, f'k{i}')}{blanks(r)}:{blanks(r)}{json_value(r, 0)}{blanks(r)}"
                          for i in range(r.randrange(1, 6))) + "}"
    return ends(r, blanks(r) + body + blanks(r))


def make_catalog(r):
    """A string catalog with texts that have no translation, one of their own, or variations."""
    def unit(state="translated"):
        return f'{{"stringUnit"{blanks(r)}:{blanks(r)}{{"state":"{state}",{blanks(r)}"value":{json_string(r, text(r))}}}}}'

    def entry():
        kind = r.random()
        if kind < 0.3:
            return "{" + blanks(r) + "}"
        if kind < 0.4:
            return '{"shouldTranslate":false}'
        if kind < 0.6:
            return '{"comment":"x",' + blanks(r) + '"extractionState":"manual"}'
        plural = f'{{"variations":{{"plural":{{{blanks(r)}"one":{unit()},{blanks(r)}"other":{unit()}}}}}}}'
        languages = {"en": r.choice([unit(), plural])} if r.random() < 0.7 else {}
        languages.update({"fr": unit(), "pl": unit(r.choice(["new", "translated"]))} if r.random() < 0.4 else {})
        all = ",".join(f'{blanks(r)}"{name}"{blanks(r)}:{value}' for name, value in languages.items())
        return f'{{"localizations":{{{all}{blanks(r)}}}}}'

    entries = ",".join(f"{blanks(r)}{json_string(r, f'{i} {text(r)}')}{blanks(r)}:{blanks(r)}{entry()}{blanks(r)}"
                       for i in range(r.randrange(1, 6)))
    return ends(r, f'{{"sourceLanguage":"en",{blanks(r)}"strings":{{{entries}}},"version":"1.0"}}')


def units_of(localization, path=()):
    """(path, state, value) of each string unit."""
    for name, value in localization.items():
        if name == "stringUnit":
            yield path, value["state"], value["value"]
        elif isinstance(value, dict):
            yield from units_of(value, path + (name,))


def view_catalog(data):
    """All that is no new Polish, and the new Polish with the texts that it translates."""
    content = json.loads(data.decode("utf-8-sig"))
    texts = []
    for key, entry in content["strings"].items():
        localizations = entry.get("localizations", {})
        source = {path: value for path, _, value in units_of(localizations.get("en", {}))}
        polish = list(units_of(localizations.get("pl", {})))
        if all(state in ("new", "needs_review") for _, state, _ in polish):
            localizations.pop("pl", None)
            texts += [(source.get(path) or source.get(path[:-1] + ("other",)) or key, value)
                      for path, state, value in polish if state != "new"]
        if not localizations:
            entry.pop("localizations", None)
    return (data[:3] == b"\xef\xbb\xbf", content), texts


def view_json(data):
    content = data.decode("utf-8-sig")
    json.loads(content)
    layout, texts = [], []
    for m in re.finditer(r'"(?:[^"\\]|\\.)*"(\s*:)?|[^"]+', content):
        if m[0].startswith('"') and not m[1]:
            texts.append(json.loads(m[0]))
            layout.append("TEXT")
        else:
            layout.append(m[0])
    return (data[:3] == b"\xef\xbb\xbf", layout), texts


def yaml_scalar(r, s, indent):
    style = r.random()
    if not s.strip() or style < 0.3:
        return json.dumps(s, ensure_ascii=r.random() < 0.3)
    if style < 0.5:
        return "'" + s.replace("'", "''") + "'"
    if style < 0.65:
        lines = s.split(". ")
        return r.choice("|>") + r.choice(["", "-", "+"]) + "\n" + "\n".join(indent + "  " + line for line in lines)
    try:
        plain = isinstance(yaml.safe_load(s), str) and yaml.safe_load(f"a: {s}") == {"a": s}
    except yaml.YAMLError:
        plain = False
    return s if plain else "'" + s.replace("'", "''") + "'"


def yaml_block(r, depth, indent):
    lines = []
    for i in range(r.randrange(1, 5)):
        if r.random() < 0.2:
            lines.append(indent + "# " + sentence(r))
        if r.random() < 0.1:
            lines.append("")
        key = r.choice([f"k{i}", f'"k {i}"', f"'k{i}'"])
        kind = r.random()
        if depth < 3 and kind < 0.25:
            lines.append(f"{indent}{key}:")
            lines += yaml_block(r, depth + 1, indent + "  ")
        elif kind < 0.4:
            lines.append(f"{indent}{key}:")
            lines += [f"{indent}  - {yaml_scalar(r, text(r), indent + '  ')}" for _ in range(r.randrange(1, 3))]
        elif kind < 0.45:
            lines.append(f"{indent}{key}: [{', '.join(json.dumps(text(r)) for _ in range(2))}, 1]")
        elif kind < 0.5:
            lines.append(f"{indent}{key}: {r.choice(['1', 'true', 'null', '~', '2.5', '2026-11-29'])}")
        else:
            scalar = yaml_scalar(r, text(r), indent)
            comment = "  # " + sentence(r) if "\n" not in scalar and r.random() < 0.15 else ""
            lines.append(f"{indent}{key}:{r.choice([' ', '  '])}{scalar}{comment}")
    return lines


def make_yaml(r):
    root = [r.choice(["---", "# " + sentence(r), ""])] if r.random() < 0.4 else []
    return ends(r, "\n".join(root + ["en:"] + yaml_block(r, 0, "  ")) + r.choice(["\n", "", "\n\n"]))


def flatten(value, path, texts):
    if isinstance(value, dict):
        return [(k, flatten(v, path + [k], texts)) for k, v in value.items()]
    if isinstance(value, list):
        return [flatten(v, path, texts) for v in value]
    if isinstance(value, str):
        texts.append(value)
        return "TEXT"
    return value


def view_yaml(data):
    content = data.decode("utf-8-sig")
    value = yaml.safe_load(content)
    value = {"ROOT" if k in ("en", "pl") else k: v for k, v in value.items()}
    texts = []
    structure = flatten(value, [], texts)
    comments = [line for line in content.split("\n") if line.strip().startswith("#")]
    return (structure, comments, content.count("\r\n") > 0, data[:3] == b"\xef\xbb\xbf"), texts


def make_properties(r):
    lines = []
    ascii_only = r.random() < 0.5
    for i in range(r.randrange(1, 12)):
        kind = r.random()
        if kind < 0.15:
            lines.append(r.choice(["# ", "! ", "  # "]) + sentence(r, not ascii_only))
        elif kind < 0.2:
            lines.append("")
        else:
            value = text(r, True)
            if r.random() < 0.2:
                value = value.replace(" ", "\n", 1)
            out = ""
            for c in value:
                if c == "\n":
                    out += "\\n"
                elif ord(c) > 127 and (ascii_only or r.random() < 0.2):
                    out += f"\\u{ord(c):04x}"
                elif c in ":=#!" and r.random() < 0.3:
                    out += "\\" + c
                elif c == " " and out and r.random() < 0.05:
                    out += " \\\n    "
                else:
                    out += c
            lines.append(f"{r.choice(['', '  '])}k.{i}{r.choice(['=', ' = ', ': ', ' ', ':'])}{out}")
    return ends(r, "\n".join(lines) + r.choice(["\n", ""]), bom=False)


def view_properties(data):
    content = data.decode()
    logical, comments, current = [], [], None
    for line in re.split(r"\r\n|\n", content):
        stripped = line.lstrip(" \t\f")
        if current is None and (not stripped or stripped[0] in "#!"):
            comments.append(line)
            continue
        current = stripped if current is None else current + stripped
        if re.search(r"(?<!\\)(\\\\)*\\$", current):
            current = current[:-1]
            continue
        logical.append(current)
        current = None
    keys, texts = [], []
    for line in logical:
        m = re.match(r"((?:[^\\=: \t]|\\.)*)[ \t]*[=:]?[ \t]*(.*)$", line, re.S)
        keys.append(m[1])
        value = re.sub(r"\\u([0-9a-fA-F]{4})", lambda u: chr(int(u[1], 16)), m[2])
        value = re.sub(r"\\(.)", lambda e: {"n": "\n", "t": "\t", "r": "\r", "f": "\f"}.get(e[1], e[1]), value)
        texts.append(value.encode("utf-16", "surrogatepass").decode("utf-16"))
    return (keys, comments, max(content, default="a") > "\x7f"), texts


def make_strings(r):
    out = ""
    for i in range(r.randrange(1, 10)):
        if r.random() < 0.2:
            out += r.choice(["/* {} */\n", "// {}\n", "/* {}\n more */"]).format(sentence(r))
        value = text(r).replace("\\", "\\\\").replace('"', '\\"')
        if r.random() < 0.2:
            value = value.replace(" ", r.choice(["\\n", " \\\"q\\\" ", "\\t"]), 1)
        key = r.choice([f'"k {i}"', f"k{i}"])
        out += f"{blanks(r)}{key}{blanks(r)}={blanks(r)}\"{value}\"{blanks(r)};{r.choice([chr(10), ' ', ''])}"
    return ends(r, out)


def view_strings(data):
    layout, texts = [], []
    content = data.decode("utf-8-sig")
    for m in re.finditer(r'/\*.*?\*/|//[^\n]*|(=\s*)"((?:[^"\\]|\\.)*)"|"(?:[^"\\]|\\.)*"|[^"/=]+|.', content, re.S):
        if m[1] is not None:
            layout += [m[1], "TEXT"]
            texts.append(re.sub(r"\\(.)", lambda e: {"n": "\n", "t": "\t", "r": "\r"}.get(e[1], e[1]), m[2]))
        else:
            layout.append(m[0])
    return (layout, data[:3] == b"\xef\xbb\xbf"), texts
