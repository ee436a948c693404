"""What happens to files by accident: cuts, flips, mixed-up and replaced files."""
import random, struct

POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"4d7a2146" * 8 + b"\nsize 310000000\n"
PAGE = b"<!DOCTYPE html>\n<html><head><title>Sign in</title></head><body>Please sign in.</body></html>\n"


def cut(rng, data):
    return data[:int(len(data) * rng.random())]


def flipped(rng, data):
    out = bytearray(data)
    for _ in range(rng.choice((1, 1, 4, 32))):
        if out:
            out[rng.randrange(len(out))] = rng.randrange(256)
    return bytes(out)


def flipped_early(rng, data):
    """Heads and sizes lie at the beginning, and zip's directory at the end."""
    early = min(len(data), 4096)
    if rng.random() < 0.5:
        return flipped(rng, data[:early]) + data[early:]
    return data[:-early] + flipped(rng, data[-early:])


def large_number(rng, data):
    if len(data) < 16:
        return data
    at = rng.randrange(min(len(data) - 8, 65536))
    number = rng.choice((0, 1, 0x7F, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 1 << 40, (1 << 63) - 1, (1 << 64) - 1))
    size = rng.choice((2, 4, 8))
    return data[:at] + struct.pack("<Q", number)[:size] + data[at + size:]


def digits_changed(rng, data):
    """Numbers in text become others."""
    places = [i for i, c in enumerate(data[:65536]) if 48 <= c <= 57]
    if not places:
        return flipped(rng, data)
    at = rng.choice(places)
    number = rng.choice((b"0", b"-1", b"99999999", b"2147483648", b"9223372036854775807", b"1e308", b"99999999999999999999", b"null"))
    return data[:at] + number + data[at + 1:]


def removed(rng, data):
    at = rng.randrange(len(data) + 1)
    return data[:at] + data[at + rng.choice((1, 4, 100, 4096)):]


def doubled(rng, data):
    at = rng.randrange(len(data) + 1)
    return data[:at] + data[at:at + 4096] + data[at:]


def noise(rng, data):
    return random.Random(rng.random()).randbytes(len(data))


def zeros(rng, data):
    return bytes(len(data))


def nothing(rng, data):
    return b""


ACCIDENTS = (cut, cut, flipped, flipped, flipped_early, flipped_early, large_number, large_number, digits_changed, digits_changed, removed,
             doubled, noise, zeros, nothing)


def damaged(rng, files):
    """The files of a model with one to three accidents: {name: bytes} to {name: bytes}."""
    files = dict(files)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        name = rng.choice(sorted(files))
        files[name] = rng.choice(ACCIDENTS)(rng, files[name])
    if rng.random() < 0.05:
        a, b = rng.choice(sorted(files)), rng.choice(sorted(files))
        files[a], files[b] = files[b], files[a]
    if rng.random() < 0.05 and len(files) > 1:
        del files[rng.choice(sorted(files))]
    return files
