"""Models of each kind: whole ones to damage, and what somebody might build by intent. A model is {name of a file: bytes}; one that is a
single file named *.zip or *.argosmodel is named as that file, all others as their folder."""
import json, pathlib, random, struct
from hostile.formats import *

FIXTURES = pathlib.Path(__file__).resolve().parents[2] / "tests" / "fixtures"
MIB = 1 << 20
SETTINGS = b"vocabs:\n  - v.spm\n  - v.spm\nbeam-size: 2\nnormalize: 1\n"
LISTED = b"vocabs:\n  - vocab.yml\n  - vocab.yml\n"


def folder(path):
    return {f.name: f.read_bytes() for f in sorted((FIXTURES / path).iterdir()) if f.is_file() and f.name not in ("expected.json",)}


SPM = (FIXTURES / "marian/v.spm").read_bytes()
NPZ = (FIXTURES / "marian/ssru/model.npz").read_bytes()
ARRAYS = arrays_of(NPZ)
YAML_ARRAY = "special:model.yml"
YAML = ARRAYS[YAML_ARRAY][2].split(b"\0")[0]
BIN = [(name, FLOATS if descr == "<f4" else BYTES, shape, data) for name, (descr, shape, data) in ARRAYS.items()]
CT2 = folder("ct2/v2-aren-transliteration-i8")
HF = {name: folder("hf/" + name) for name in ("marian", "m2m", "nllb")}
OWN = {name: folder(f"models/{name}/model") for name in ("pre", "post", "gnmt")}


def with_yaml(text):
    return {**ARRAYS, YAML_ARRAY: ("|i1", (len(text) + 1,), text + b"\0")}


def npz_model(arrays, **other):
    return {"model.npz": npz_of(arrays), "decoder.yml": SETTINGS, "v.spm": SPM, **other}


def bin_model(arrays, **lies):
    return {"model.bin": marian_bin(arrays, **lies), "v.spm": SPM}


def zipped(files, method=STORED, more=()):
    return {"model.zip": zip_of([entry(name, data, method) for name, data in files.items()] + list(more))}


def argos(metadata, files=CT2, more=(), codes=b"#version: 0.2\n"):
    inner = {"p/metadata.json": metadata, "p/bpe.model": codes, **{"p/model/" + name: data for name, data in files.items()}}
    return {"model.argosmodel": zip_of([entry(name, data) for name, data in inner.items()] + list(more))}


CODES = b"#version: 0.2\n" + b"".join(b"%c %c\n%c%c a</w>\n" % (a, b, a, b) for a in range(97, 123) for b in range(97, 123))
TOKENS = b"</s>: 0\n<unk>: 1\n" + b"".join(b"\"%c%c@@\": %d\n" % (97 + i // 26, 97 + i % 26, i) for i in range(2, 500))


def opus(codes, script=b"tokenizer.perl -a", **more):
    files = {"model.npz": NPZ, "decoder.yml": LISTED, "vocab.yml": TOKENS, "source.bpe": codes, "target.bpe": codes}
    return {**files, "preprocess.sh": script, **more}


METADATA = json.dumps({"package_version": "1.0", "from_code": "ar", "to_code": "en", "target_prefix": ""}).encode()
MARIAN = npz_model(ARRAYS)
WHOLE = {
    "zip": [zipped(MARIAN, DEFLATED), zipped(MARIAN)],
    "npz": [MARIAN],
    "yaml": [{**MARIAN, "vocab.yml": b"".join(b"p%d: %d\n" % (i, i) for i in range(500)), "decoder.yml": LISTED, "source.spm": SPM}],
    "json": [HF["marian"], HF["nllb"]],
    "safetensors": [HF["m2m"], HF["nllb"]],
    "gz": [{"model.bin.gz": gzip_of(marian_bin(BIN)), "v.spm.gz": gzip_of(SPM)}],
    "zst": [{"model.bin.zst": zst_of(marian_bin(BIN)), "v.spm.zst": zst_of(SPM)}],
    "marian": [bin_model(BIN)],
    "ct2": [CT2, {**CT2, "model.bin": Ct2(CT2["model.bin"]).bytes()}],
    "hf": list(HF.values()),
    "spm": [{**MARIAN}],
    "argos": [argos(METADATA)],
    "codes": [opus(CODES), opus(CODES, **{"nonbreaking_prefix.en": b"Dr\nNo #NUMERIC_ONLY#\n"})],
    "own": list(OWN.values()),
    "own-bare": [{n: d for n, d in m.items() if n != "manifest.json"} for m in OWN.values()],
}


def deep(text, count):
    return text * count


def texts(rng):
    """Hostile YAML and JSON alike: (label, bytes)."""
    n = rng.choice((2, 8, 20))
    yield "cycle", b"a: &a {b: *a}\ntype: &t [*t]\nvocabs: &v [*v]\n"
    yield "nested aliases", b"a: &a0 [x, x, x, x, x, x, x, x, x]\n" + b"".join(
        b"b%d: &a%d [%s]\n" % (i, i, b", ".join([b"*a%d" % (i - 1)] * 9)) for i in range(1, 12))
    yield "long aliases", b"vocabs: [&a " + b"x" * MIB + b", *a" * 50000 + b"]\n"
    yield "deep [", deep(b"[", n * MIB)
    yield "deep {", deep(b'{"a":', n * MIB // 4)
    yield "deep -", deep(b"- ", n * MIB // 4)
    yield "deep ?", deep(b"? ", n * MIB // 4)
    yield "empty lists", b'{"a":[' + b"[]," * (n * MIB // 3) + b"[]]}"
    yield "empty objects", b'{"a":[' + b"{}," * (n * MIB // 3) + b"{}]}"
    yield "zeros", b'{"a":[' + b"0," * (n * MIB // 2) + b"0]}"
    yield "many keys", b"{" + b",".join(b'"%x":0' % i for i in range(n * 50000)) + b"}"
    yield "one key often", b"{" + b'"a":0,' * (n * 100000) + b'"a":0}'
    yield "long text", b'{"vocabs":"' + b"x" * (n * MIB) + b'"}'
    yield "escapes", b'{"vocabs":"' + rb"\u0000" * (n * MIB // 6) + b'"}'
    yield "long number", b'{"vocab_size":' + b"9" * (n * MIB // 4) + b"}"
    yield "list", b"- a\n" * (n * MIB // 4)
    yield "words", b"a " * (n * MIB // 2)
    yield "lines", b"\n" * (n * MIB)
    yield "spaces", b" " * (n * MIB)
    yield "comment", b"#" * (n * MIB)
    yield "quote", b'"' + b"\n" * (n * MIB // 4)
    yield "flow keys", b"{" + b"a, " * (n * MIB // 8) + b"}"
    yield "tags", b"!" * (n * MIB // 4)
    yield "anchors", b"".join(b"k%d: &a%d v\n" % (i, i) for i in range(n * 20000))
    yield "NUL", bytes(n * MIB)
    yield "names", b'{"\\u001b[2J\\u0007evil": "\\u001b]0;x\\u0007", "model_type": "\\u001b[31m"}'
    yield "wide numbers", b'{"vocab_size": 4194304, "max_position_embeddings": 1048576, "d_model": 65536, "encoder_layers": 1000}'


def zip_cases(rng):
    big, size = deflated(bytes(40 * MIB)), 40 * MIB
    bomb = lambda name: {"name": name, "data": b"", "method": DEFLATED, "raw": big, "size": size, "crc": rng.randrange(1 << 32)}
    for name in ("model.npz", "LICENSE", "metadata.json", "README.md", "decoder.yml", "v.spm", "a/model.bin", "model.bin", "config.json",
                 "x.safetensors", "model.safetensors", "vocab.yml"):
        yield "bomb " + name, zipped({n: d for n, d in MARIAN.items() if n != name}, more=[bomb(name)])
    yield "many bombs", zipped({"v.spm": SPM}, more=[bomb(f"a{i}/model.bin") for i in range(20)])
    yield "claims", zipped({"v.spm": SPM}, more=[entry("model.npz", b"", DEFLATED, raw=rng.randbytes(3 * MIB), size=3200 * MIB, crc=1)])
    yield "claims little", zipped({"v.spm": SPM}, more=[entry("model.npz", NPZ, DEFLATED, size=100)])
    for name in ("LICENSE%d", "a%d/model.bin", "m%d.npz", "m%d.bin", "m%d.bin.gz", "%d.spm", "d%d/config.json", "f%d"):
        yield "many " + name, zipped(MARIAN, more=[entry(name % i, b"x") for i in range(rng.choice((3000, 60000)))])
    packed = gzip_of(marian_bin(BIN, count=1) + bytes(MIB))
    yield "many packed", zipped({"v.spm": SPM}, more=[entry(f"m{i}.bin.gz", packed) for i in range(200)])
    yield "one place", zipped(MARIAN, more=[entry(f"m{i}.npz", b"", offset=0, raw=b"", size=len(NPZ), packed=len(NPZ)) for i in range(9)])
    for name in (b"LICENSE\n\x1b[31m\x07", b"lex.\x1b]0;x\x07\x1b[2J.bin", b"\x1b[2Jmodel2.npz", b"LICENSE\0a", b"LICENSE\xff\xfe",
                 b"LICENSE" + b"A" * 60000, b"../../../../tmp/x", b"/etc/x", b"..\\x", b"a" * 255 + b".spm", b"x" * 60000 + b".npz"):
        yield f"name {name[:20]!r}", zipped(MARIAN, more=[entry(name, b"x")])
    yield "links", zipped(MARIAN, more=[entry("LICENSE", b"/etc/passwd")])
    yield "encrypted", zipped({"v.spm": SPM}, more=[entry("model.npz", NPZ, flags=1)])
    yield "zip in zip", zipped({"model.zip": zipped(MARIAN)["model.zip"]})


def npz_cases(rng):
    weight = rng.choice([n for n in ARRAYS if n.endswith(("_W1", "_Wq", "Wemb"))])
    for shape in ("(-4, 4)", "(9223372036854775807, 2)", "(0, 9223372036854775807)", "(9223372036854775807, 0)", "(3,, x)", "(3, 4", "()",
                  "(" + "1, " * 100000 + ")", "(1048576, 1048576)"):
        yield "shape " + shape[:24], npz_model({**ARRAYS, weight: ("<f4", shape, b"")})
    for descr in ("<f8", "<f2", "<i8", "|O", "<U4", ">f4", "<f0", "\x1b[2J", ""):
        yield f"type {descr!r}", npz_model({**ARRAYS, weight: (descr, (32, 32), bytes(4096))})
    yield "zeros", {**MARIAN, "model.npz": npz_of({**ARRAYS, weight: ("<f4", (MIB, 8), bytes(32 * MIB))}, DEFLATED)}
    yield "turned", npz_model({**ARRAYS, "decoder_ff_logit_out_W": ("<f4", (9000000000000000000, 0), b"")})
    yield "names", npz_model({**ARRAYS, "evil\x1b[2J\x07": ("<f4", (1,), bytes(4))})
    yield "many names", npz_model({**ARRAYS, **{f"n{i}": ("<f4", (1,), bytes(4)) for i in range(20000)}})
    yield "NaN", npz_model({**ARRAYS, weight: ("<f4", (32, 32), struct.pack("<f", float("nan")) * 1024)})
    yield "long head", npz_model({**ARRAYS, weight: ("<f4", "(32, 32), 'x': '" + "y" * 60000 + "'", bytes(4096))})
    for old, new in ((b"dim-emb: 32", b"dim-emb: 65536"), (b"enc-depth: 2", b"enc-depth: 1000"), (b"dec-depth: 2", b"dec-depth: 1000"),
                     (b"transformer-heads: 4", b"transformer-heads: 1024"), (b"transformer-dim-ffn: 64", b"transformer-dim-ffn: 1048576")):
        yield new.decode(), npz_model(with_yaml(YAML.replace(old, new)))


def yaml_cases(rng):
    for label, text in texts(rng):
        place = rng.randrange(5)
        if place == 0:
            yield "decoder.yml " + label, {**MARIAN, "decoder.yml": text}
        elif place == 1:
            yield "vocab.yml " + label, {**MARIAN, "decoder.yml": LISTED, "vocab.yml": text, "source.spm": SPM, "target.spm": SPM}
        elif place == 2:
            yield "model.yml " + label, npz_model(with_yaml(text))
        elif place == 3:
            yield "zipped " + label, zipped({**MARIAN, "decoder.yml": text}, DEFLATED)
        else:
            yield "config.yml " + label, {"config.yml": text, "model.npz": NPZ, "v.spm": SPM}
    count = rng.choice((100000, 1000000, 4000000))
    numbered = lambda text: {**MARIAN, "decoder.yml": LISTED, "vocab.yml": text, "source.spm": SPM, "target.spm": SPM}
    yield "many pieces", numbered(b"".join(b"%x: %d\n" % (i, i) for i in range(count // 4)))
    yield "gap", numbered(b"a: 4194303\n")
    yield "alias pieces", numbered(b"? &a " + b"x" * MIB + b"\n: 0\n" + b"".join(b"? *a\n: %d\n" % i for i in range(1, 50000)))
    yield "long piece", numbered(b'"' + b"y" * (8 * MIB) + b'": 0\n</s>: 1\n<unk>: 2\n')
    listed = lambda text: {**MARIAN, "decoder.yml": b"vocabs: [v.txt, v.txt]\n", "v.txt": text, "source.spm": SPM, "target.spm": SPM}
    yield "many lines", listed(b"".join(b"%x\n" % i for i in range(count)))
    yield "short lines", listed(b"a\n" * (4 * count))


def json_cases(rng):
    names = ["config.json", "generation_config.json", "vocab.json", "tokenizer_config.json", "special_tokens_map.json", "tokenizer.json",
             "added_tokens.json", "model.safetensors.index.json"]
    for label, text in texts(rng):
        model = dict(rng.choice((HF["marian"], HF["nllb"], HF["m2m"])))
        name = rng.choice(names)
        model[name] = text
        yield f"{name} {label}", model
    config = json.loads(HF["marian"]["config.json"])
    for key, value in (("max_position_embeddings", MIB), ("d_model", 65536), ("vocab_size", 4 * MIB), ("encoder_layers", 1000),
                       ("decoder_ffn_dim", MIB), ("encoder_attention_heads", 1024), ("pad_token_id", 1 << 62), ("model_type", "\x1b[2J"),
                       ("d_model", -1), ("d_model", 1.5), ("decoder_start_token_id", [])):
        changed = json.dumps({**config, key: value}).encode()
        yield f"{key} {value!r}", {**HF["marian"], "config.json": changed}
        if key != "vocab_size":
            continue
        both = json.dumps({**config, key: value, "decoder_vocab_size": value, "pad_token_id": 0}).encode()
        yield "both sides", {**HF["marian"], "config.json": both}


def safetensors_cases(rng):
    base = dict(HF["nllb"])
    header, data = tensors_of(base["model.safetensors"])
    model = lambda file: {**base, "model.safetensors": file}
    n = rng.choice((2, 10, 24))
    for label, text in texts(rng):
        yield label, model(safetensors(text, data))
    for name in sorted(header)[:3]:
        if name == "__metadata__":
            continue
        for change in ({"shape": [1 << 31, 1 << 31]}, {"shape": [-1]}, {"shape": [0, 1 << 62]}, {"shape": [1] * 100000}, {"dtype": "I64"},
                       {"data_offsets": [0, 1 << 62]}, {"data_offsets": [1 << 62, 0]}, {"data_offsets": [0, len(data)]}):
            yield f"{name} {str(change)[:30]}", model(safetensors({**header, name: {**header[name], **change}}, data))
    none = {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]}
    yield "many tensors", model(safetensors({**{f"t{i}": none for i in range(n * 10000)}, **header}, data))
    yield "names", model(safetensors({**header, "\x1b[2J\x07": none}, data))
    yield "long name", model(safetensors({**header, "x" * (n * MIB): none}, data))
    yield "metadata", model(safetensors({**header, "__metadata__": {f"k{i}": "" for i in range(n * 10000)}}, data))
    for length in (0, 1, 1 << 27, 1 << 62, (1 << 64) - 1):
        yield f"length {length}", model(safetensors(header, data, length=length))


def packed_cases(rng, pack, bomb, end):
    whole, size = marian_bin(BIN), rng.choice((50, 200, 1000)) * MIB
    spm = pack(SPM)
    yield "zeros", {"model.bin" + end: bomb(b"", size), "v.spm" + end: spm}
    yield "zeros behind a head", {"model.bin" + end: bomb(whole[:4096], size), "v.spm" + end: spm}
    yield "zeros behind a model", {"model.bin" + end: bomb(whole, size), "v.spm" + end: spm}
    head = marian_bin([("Wemb", FLOATS, (size // 2048, 512), b"")])[:-1]
    yield "a large array", {"model.bin" + end: bomb(head, size), "v.spm" + end: spm}
    yield "vocabulary", {"model.bin": whole, "v.spm" + end: bomb(b"", size)}
    yield "vocabulary behind a model", {"model.bin": whole, "v.spm" + end: bomb(SPM, size)}
    yield "shortlist", {"model.bin": whole, "lex.bin" + end: bomb(b"", size), "v.spm": SPM}
    yield "another model", {"model.bin": whole, "a.bin" + end: bomb(b"", size), "v.spm": SPM}
    yield "npz", {"model.npz" + end: bomb(NPZ, size), "v.spm": SPM, "decoder.yml": SETTINGS}
    yield "npz of zeros", {"model.npz" + end: bomb(b"", size), "v.spm": SPM, "decoder.yml": SETTINGS}
    yield "twice", {"model.bin" + end: pack(pack(whole)), "v.spm": SPM}
    yield "list", {**MARIAN, "decoder.yml": b"vocabs: [v.txt%s, v.txt%s]\n" % (end.encode(), end.encode()),
                   "v.txt" + end: bomb(b"a\n" * 100, size), "source.spm": SPM, "target.spm": SPM}
    if end == ".zst":
        for claims in (0, 1, 1 << 40, (1 << 64) - 1):
            yield f"claims {claims}", {"model.bin.zst": zst_of(whole, claims=claims), "v.spm": SPM}


def marian_cases(rng):
    some = rng.choice([n for n, kind, shape, _ in BIN if len(shape) == 2])
    one = struct.pack("<f", 1.0)
    changed = lambda kind, shape, data: bin_model([(n, kind, shape, data) if n == some else (n, *rest) for n, *rest in BIN])
    for label, kind, shape, data in (
            ("0 rows", INTGEMM, (0, 2147483647), one), ("0 columns", INTGEMM, (2147483647, 0), one),
            ("f32 0 rows", FLOATS, (0, 2147483647), b""),
            ("negative", FLOATS, (-1, -1), bytes(256)), ("unit nan", INTGEMM, (32, 64), bytes(2048) + struct.pack("<f", float("nan"))),
            ("unit 0", INTGEMM, (32, 64), bytes(2052)), ("one column", INTGEMM, (1, 4 * MIB), bytes(4 * MIB) + one),
            ("one row", INTGEMM, (4 * MIB, 1), bytes(4 * MIB) + one),
            ("type", 0x999, (32, 64), bytes(8192)), ("rank 0", FLOATS, (), bytes(4)),
            ("rank 8", FLOATS, (1,) * 8, bytes(4)), ("rank 100000", FLOATS, (1,) * 100000, bytes(4))):
        yield f"{some} {label}", changed(kind, shape, data)
    every = [(n, INTGEMM, (0, 2147483647), one) if len(shape) == 2 else (n, kind, shape, data) for n, kind, shape, data in BIN]
    yield "all 0 rows", bin_model(every)
    for count in (0, 1, 100000, 1 << 62):
        yield f"{count} arrays", bin_model(BIN, count=count)
    yield "many arrays", bin_model([(f"a{i}", FLOATS, (1,), b"") for i in range(5000)] + BIN)
    yield "names", bin_model(BIN + [("\x1b[2J\x07", FLOATS, (1,), bytes(4))])
    yield "long name", bin_model(BIN + [("x" * MIB, FLOATS, (1,), bytes(4))])
    table = struct.pack("<QQQQQQ", 1, 1, 1 << 63, FLOATS, 1, 4)
    yield "name of 2^63", {"model.bin": table + bytes(256), "v.spm": SPM}
    text = lambda y: [(n, kind, (len(y) + 1,), y + b"\0") if n == YAML_ARRAY else (n, kind, shape, data) for n, kind, shape, data in BIN]
    for old, new in ((b"dim-emb: 32", b"dim-emb: 65536"), (b"enc-depth: 2", b"enc-depth: 1000")):
        yield new.decode(), bin_model(text(YAML.replace(old, new)))
    for count in (2, 40, 1000):
        yield f"{count} models", {**{f"m{i}.bin": marian_bin(BIN[:2]) for i in range(count)}, "v.spm": SPM}


def ct2_cases(rng):
    def model(change=lambda file: None, **lies):
        file = Ct2(CT2["model.bin"])
        change(file)
        return {**CT2, "model.bin": file.bytes(**lies)}

    def layers(file, count):
        """Many layers, all of them aliases of the first."""
        first = [v[0] for v in file.variables if "layer_0/" in v[0]]
        file.aliases += [(name.replace("layer_0/", f"layer_{i}/"), name) for name in first for i in range(2, count)]

    def wide(file, count):
        """Likewise, of wide ones."""
        for v in file.variables:
            if v[0].endswith("ffn/linear_0/weight") and "encoder" in v[0]:
                v[1], v[3] = (65536, v[1][1]), bytes(65536 * v[1][1] * v[2])
        layers(file, count)

    def set_variable(end, shape, item=None, data=None):
        def change(file):
            for v in file.variables:
                if v[0].endswith(end):
                    v[1], v[2], v[3] = shape, item or v[2], v[3] if data is None else data
        return change

    for count in (3, 100, 2500, 20000):
        yield f"{count} aliased layers", model(lambda f: layers(f, count))
        yield f"{count} wide aliased layers", model(lambda f: wide(f, count))
    yield "alias of itself", model(lambda f: f.aliases.append(("a", "a")))
    yield "alias of alias", model(lambda f: f.aliases.extend([("b", f.variables[0][0]), ("a", "b")]))
    yield "many aliases", model(lambda f: f.aliases.extend((f"a{i}", f.variables[0][0]) for i in range(200000)))
    yield "names", model(lambda f: f.variables.append(["\x1b[2J\x07", (1,), 4, bytes(4)]))
    for shape in ((), (0,), (0, 0xFFFFFFFF), (0xFFFFFFFF, 0xFFFFFFFF), (0xFFFFFFFF, 0), (1,) * 200):
        yield f"shape {str(shape)[:30]}", model(set_variable("linear_0/weight", shape))
    yield "heads", model(set_variable("num_heads", (), 2, struct.pack("<h", 0)))
    yield "tall", model(set_variable("linear_0/weight", (8 * MIB, 1), 1, bytes(8 * MIB)))
    yield "positions", model(lambda f: f.variables.extend([[f"{s}/position_encodings/encodings", (65536, 32), 2, bytes(4 * MIB)]
                                                          for s in ("encoder", "decoder")]))
    for count in (0, 1, 200000, 0xFFFFFFFF):
        yield f"{count} variables", model(count=count)
    for version in (0, 1, 3, 5, 7, 0xFFFFFFFF):
        yield f"version {version}", model(version=version)
    n = rng.choice((1, 8, 20))
    for side in ("source", "shared"):
        for label, text in (("empty lines", b"\n" * (n * MIB)), ("short lines", b"a\n" * (n * MIB // 2)), ("one line", b"a" * (n * MIB)),
                            ("numbers", b"".join(b"%x\n" % i for i in range(n * 100000))), ("escapes", b"\x1b[2J\n<unk>\n\x07\n")):
            yield f"{side} {label}", {**CT2, side + "_vocabulary.txt": text}
    for label, text in texts(rng):
        name = rng.choice(("config.json", "source_vocabulary.json", "shared_vocabulary.json", "metadata.json"))
        yield f"{name} {label}", {**CT2, name: text}
    tokens = json.dumps([f"{i:x}" for i in range(n * 50000)]).encode()
    yield "json tokens", {**CT2, "source_vocabulary.json": tokens, "target_vocabulary.json": tokens}


def hf_cases(rng):
    for name, base in HF.items():
        for lost in base:
            yield f"{name} without {lost}", {n: d for n, d in base.items() if n != lost}
    base = HF["m2m"]
    index = json.loads(base["model.safetensors.index.json"])
    for file in ("../../x", "/etc/passwd", "\x1b[2J", "", "config.json", 7, "x" * 100000):
        changed = json.dumps({**index, "weight_map": {**index["weight_map"], "x": file}}).encode()
        yield f"index names {file!r:.20}", {**base, "model.safetensors.index.json": changed}
    tokens = json.dumps({"added_tokens": [{"id": i, "content": f"t{i}", "special": True} for i in range(200000)]}).encode()
    yield "added tokens", {**HF["marian"], "tokenizer.json": tokens}
    vocabulary = json.loads(HF["marian"]["vocab.json"])
    for label, changed in (("negative", {"a": -1}), ("huge", {"a": 1 << 63}), ("text", {"a": "b"}), ("twice", {"zz": 3}),
                           ("names", {"\x1b[2J\x07": 1 << 30}), ("long", {"y" * MIB: 5000000})):
        yield "vocab " + label, {**HF["marian"], "vocab.json": json.dumps({**vocabulary, **changed}).encode()}
    yield "pickle", {**{n: d for n, d in HF["marian"].items() if n != "model.safetensors"}, "pytorch_model.bin": b"cos\nsystem\n(S'x'\ntR."}


def spm_cases(rng):
    n = rng.choice((1, 4, 16))
    model = lambda spm: {**MARIAN, "v.spm": spm}
    yield "empty pieces", model(b"\x0a\0" * (n * MIB // 2))
    yield "short pieces", model(b"".join(piece(b"%x" % i) for i in range(n * 50000)))
    yield "more pieces", model(SPM + b"".join(piece(b"%x" % i) for i in range(n * 50000)))
    yield "one piece often", model(SPM + piece(b"x") * (n * 50000))
    yield "long piece", model(SPM + piece(b"x" * (n * MIB)))
    yield "long pieces", model(SPM + b"".join(piece(rng.randbytes(4000)) for i in range(n * 256)))
    yield "nested prefixes", model(SPM + b"".join(piece(b"a" * i) for i in range(1, 4096)))
    yield "length of 2^63", model(SPM + b"\x0a" + varint(1 << 63))
    yield "deep groups", model(b"\x0b" * (n * MIB))
    yield "unknown fields", model(SPM + field(1000, b"") * (n * 100000))
    yield "charsmap", model(SPM + field(3, field(2, struct.pack("<I", 1 << 31) + bytes(64))))
    yield "zero charsmap", model(SPM + field(3, field(2, struct.pack("<I", n * MIB) + bytes(n * MIB + 1))))
    yield "user pieces", model(SPM + b"".join(piece(b"u%x" % i, 0, 4) for i in range(n * 50000)))
    yield "names", model(SPM + piece(b"\x1b[2J\x07") + piece(b"\x1b[2J\x07"))
    for kind in (0, 5, 6, 127):
        yield f"piece of kind {kind}", model(SPM + piece(b"zz", 0, kind))
    for score in (float("nan"), float("inf"), -3e38):
        yield f"score {score}", model(SPM + piece(b"zz", score))


def argos_cases(rng):
    for label, text in texts(rng):
        yield "metadata " + label, argos(text)
    for value in ("\x1b[2J", "x" * 100000, "../..", 7, None, "<" * 3000):
        changed = json.dumps({**json.loads(METADATA), "from_code": value, "target_prefix": value, "package_version": value}).encode()
        yield f"languages {value!r:.20}", argos(changed)
    big = {"name": "p/x.json", "data": b"", "method": DEFLATED, "raw": deflated(bytes(40 * MIB)), "size": 40 * MIB, "crc": 0}
    for name in ("p/README.md", "p/LICENSE", "p/model/config.json", "p/stanza/x.zip", "p/model/shared_vocabulary.json", "p/bpe.model"):
        yield "bomb " + name, argos(METADATA, more=[{**big, "name": name}])
    yield "no model", argos(METADATA, files={})
    yield "two models", argos(METADATA, more=[entry("p/other/model.bin", CT2["model.bin"])])


def codes_cases(rng):
    n = rng.choice((2, 8, 20))
    readme = b"[x](https://a/OPUS-MT-models/%s/opus.zip)"
    for label, text in texts(rng):
        yield "codes " + label, opus(text)
        yield "versioned " + label, opus(b"#version: 0.2\n" + text)
    yield "pairs", opus(b"".join(b"%x %x\n" % (i, i + 1) for i in range(n * 50000)))
    yield "one pair often", opus(b"a b\n" * (n * MIB // 4))
    yield "growing pairs", opus(b"".join(b"a" * i + b" a\n" for i in range(1, 250 * n)))
    yield "long pair", opus(b"a" * (n * MIB) + b" " + b"b" * (n * MIB))
    yield "empty pieces", opus(b" \n" * (n * MIB // 2))
    yield "no UTF-8", opus(b"#version: 0.2\n\xff \xfe\n\xed\xa0\x80 a\n")
    yield "bytes", opus(b"#version: 0.2 byte\na b\n")
    yield "versions", opus(b"#version: " + b"0." * MIB + b"\n")
    yield "long script", opus(CODES, b"tokenizer.perl -a" * (n * MIB // 17))
    for pair in (b"en-de", b"", b"-", b"../..-x", b"en-" + b"d" * MIB, b"\x1b[2J-de", b"en" + b"-de" * 1000):
        yield "languages", opus(CODES, **{"README.md": readme % pair})
    for size in (1, n * MIB):
        yield "abbreviations", opus(CODES, **{"README.md": readme % b"en-de", "nonbreaking_prefix.en": b"a\n" * size})
    yield "one long abbreviation", opus(CODES, **{"README.md": readme % b"en-de", "nonbreaking_prefix.en": b"a" * (n * MIB)})
    yield "package", argos(METADATA, codes=CODES)


def own_cases(rng):
    base = {n: d for n, d in OWN[rng.choice(sorted(OWN))].items() if n != "manifest.json"}
    for label, text in texts(rng):
        name = rng.choice(("config.yml", "decode.yml", "manifest.json"))
        yield f"{name} {label}", {**base, name: text}
    config = base["config.yml"].decode()
    for key, value in (("width", 1 << 20), ("feed-forward", 1 << 30), ("encoder-layers", 100000), ("decoder-layers", 1 << 62),
                       ("heads", 1 << 20),
                       ("width", -16), ("width", 0), ("step", -1)):
        lines = [f"  {key}: {value}" if line.strip().startswith(key + ":") else line for line in config.split("\n")]
        yield f"{key}: {value}", {**base, "config.yml": "\n".join(lines).encode()}
    header, data = tensors_of(base["model.safetensors"])
    name = sorted(n for n in header if n != "__metadata__")[0]
    for change in ({"shape": [1 << 31, 1 << 31]}, {"shape": [0, 1 << 62]}, {"dtype": "I8"}, {"data_offsets": [0, 1 << 62]}):
        file = safetensors({**header, name: {**header[name], **change}}, data)
        yield f"tensor {str(change)[:30]}", {**base, "model.safetensors": file}
    for label, spm in (("empty pieces", b"\x0a\0" * MIB), ("pieces", b"".join(piece(b"%x" % i) for i in range(200000)))):
        yield "vocabulary " + label, {**base, "vocab.spm": spm}
    yield "names", {**base, "config.yml": config.encode() + b'\n"\\e[2J\\a": 1\n'}


CASES = {
    "zip": zip_cases, "npz": npz_cases, "yaml": yaml_cases, "json": json_cases, "safetensors": safetensors_cases,
    "gz": lambda rng: packed_cases(rng, gzip_of, lambda data, size: gzip_of(data + bytes(size)), ".gz"),
    "zst": lambda rng: packed_cases(rng, zst_of, lambda data, size: zst_of(data, zeros=size), ".zst"),
    "marian": marian_cases, "ct2": ct2_cases, "hf": hf_cases, "spm": spm_cases, "argos": argos_cases, "own": own_cases,
    "codes": codes_cases,
}
