"""Random texts, and what all files have in common: white space, line ends, byte order marks."""


WORDS = "a the dog cat house runs sees small green old street letter we you they never always with without and".split()
ODD = ["café", "Grüße", "naïve", "año", "Łódź"]
# What bench_change_files adds to sentences where it makes it hard for a format.
HARD = [' "so" it\'s', " a < b & c", " # x: y", " \\n \\", " 100%", " [z] *z* _z_ `z`", "\u00E9\u4E2D\U0001F600"]
PLAIN = ["{name}", "%s", "%1$d", "https://example.org/a?b=c", "3.5", "12:30"]


def has_letter(s):
    return any(c.isalpha() for c in s)


def sentence(r, odd=True):
    words = [r.choice(WORDS) for _ in range(r.randrange(2, 8))]
    if odd and r.random() < 0.3:
        words[r.randrange(1, len(words))] = r.choice(ODD)
    if odd and r.random() < 0.2:
        words.insert(1, r.choice(PLAIN))
    words[0] = words[0].capitalize()
    return " ".join(words) + r.choice([".", "!", "?", "", "..."])


def text(r, odd=True):
    kind = r.random()
    if kind < 0.1:
        return r.choice(["", "12", "--", "3 / 4", "2026-11-29"])
    if kind < 0.8:
        return sentence(r, odd)
    return sentence(r, odd).rstrip(".!?") + ". " + sentence(r, odd)


def blanks(r, some=" \t\n"):
    return "".join(r.choice(some) for _ in range(r.randrange(3))) if r.random() < 0.4 else ""


def ends(r, content, bom=True):
    """Gives a text one of the kinds of line ends, and perhaps a byte order mark."""
    if r.random() < 0.3:
        content = content.replace("\n", "\r\n")
    return (b"\xef\xbb\xbf" if bom and r.random() < 0.1 else b"") + content.encode()
