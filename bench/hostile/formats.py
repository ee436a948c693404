"""Writers of the formats in which models come, made to be lied to: every size, shape and checksum can be given apart from the data."""
import ast, json, struct, zlib

STORED, DEFLATED = 0, 8


def deflated(data, window=-15):
    packer = zlib.compressobj(1, zlib.DEFLATED, window)
    return packer.compress(data) + packer.flush()


def entry(name, data=b"", method=STORED, **lies):
    """An entry of a zip archive. Lies are what its heads say: size, packed, crc, offset, flags; `raw` is what lies there."""
    return {"name": name, "data": data, "method": method, **lies}


def zip_of(entries):
    body, directory = bytearray(), bytearray()
    for e in entries:
        name = e["name"] if isinstance(e["name"], bytes) else e["name"].encode()
        raw = e.get("raw")
        if raw is None:
            raw = deflated(e["data"]) if e["method"] == DEFLATED else e["data"]
        crc = e.get("crc", zlib.crc32(e["data"]))
        head = struct.pack("<HHHHHIIIHH", 20, e.get("flags", 0), e["method"], 0, 33, crc, e.get("packed", len(raw)),
                           e.get("size", len(e["data"])), len(name), 0)
        directory += struct.pack("<IH", 0x02014B50, 20) + head
        directory += struct.pack("<HHHII", 0, 0, 0, 0, e.get("offset", len(body))) + name
        body += struct.pack("<I", 0x04034B50) + head + name + raw
    count = min(len(entries), 0xFFFE)
    return bytes(body + directory) + struct.pack("<IHHHHIIH", 0x06054B50, 0, 0, count, count, len(directory), len(body), 0)


def npy(descr, shape, data, order="False"):
    head = f"{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {shape}, }}"
    head += " " * ((64 - (len(head) + 11) % 64) % 64) + "\n"
    version, length = (b"\1\0", "<H") if len(head) < 1 << 16 else (b"\2\0", "<I")
    return b"\x93NUMPY" + version + struct.pack(length, len(head)) + head.encode() + data


def arrays_of(npz):
    """{name: (descr, shape, data)} of a .npz whose entries are stored."""
    arrays, at = {}, 0
    while npz[at:at + 4] == b"PK\3\4":
        size, _, name_bytes, further = struct.unpack("<IIHH", npz[at + 18:at + 30])
        begin = at + 30 + name_bytes + further
        name, content = npz[at + 30:at + 30 + name_bytes].decode(), npz[begin:begin + size]
        length = struct.unpack("<H", content[8:10])[0]
        head = ast.literal_eval(content[10:10 + length].decode())
        arrays[name[:-4]] = (head["descr"], head["shape"], content[10 + length:])
        at = begin + size
    return arrays


def npz_of(arrays, method=STORED):
    return zip_of([entry(name + ".npy", npy(*array), method) for name, array in arrays.items()])


FLOATS, BYTES, INTGEMM = 0x404, 0x101, 0x4101


def marian_bin(arrays, version=1, count=None):
    """arrays: (name, type, shape, data)."""
    heads = names = shapes = data = b""
    for name, kind, shape, content in arrays:
        text = name.encode() + b"\0"
        content += b"\0" * (-len(content) % 256)
        heads += struct.pack("<QQQQ", len(text), kind, len(shape), len(content))
        names, data = names + text, data + content
        shapes += b"".join(struct.pack("<I", n & 0xFFFFFFFF) for n in shape)
    file = struct.pack("<QQ", version, len(arrays) if count is None else count) + heads + names + shapes
    padding = -(len(file) + 8) % 256
    return file + struct.pack("<Q", padding) + b"\0" * padding + data


class Ct2:
    """The variables of a model.bin of CTranslate2's, version 2 or later, which can be changed and written again."""

    def __init__(self, data):
        at = 4
        self.version = struct.unpack("<I", data[:4])[0]
        self.spec, at = self.text(data, at)
        self.revision, count = struct.unpack("<II", data[at:at + 8])
        at += 8
        self.variables, self.aliases = [], []
        for _ in range(count):
            name, at = self.text(data, at)
            rank = data[at]
            shape = struct.unpack(f"<{rank}I", data[at + 1:at + 1 + 4 * rank])
            at += 1 + 4 * rank
            item, size = struct.unpack("<BI", data[at:at + 5])
            size *= item if self.version < 4 else 1
            self.variables.append([name, shape, item, data[at + 5:at + 5 + size]])
            at += 5 + size

    @staticmethod
    def text(data, at):
        size = struct.unpack("<H", data[at:at + 2])[0]
        return data[at + 2:at + 1 + size].decode(), at + 2 + size

    @staticmethod
    def packed(text):
        return struct.pack("<H", len(text.encode()) + 1) + text.encode() + b"\0"

    def bytes(self, version=6, count=None):
        kinds = {1: 1, 2: 2, 4: 0}  # int8, int16, float32
        file = struct.pack("<I", version) + self.packed(self.spec)
        file += struct.pack("<II", self.revision, len(self.variables) if count is None else count)
        for name, shape, item, data in self.variables:
            file += self.packed(name) + struct.pack(f"<B{len(shape)}I", len(shape), *shape)
            file += struct.pack("<BI", kinds.get(item, item), len(data)) + data
        file += struct.pack("<I", len(self.aliases))
        return file + b"".join(self.packed(alias) + self.packed(name) for alias, name in self.aliases)


def safetensors(header, data=b"", length=None):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + data


def tensors_of(file):
    length = struct.unpack("<Q", file[:8])[0]
    return json.loads(file[8:8 + length]), file[8 + length:]


def varint(n):
    out = b""
    while n > 127:
        out, n = out + bytes([n & 127 | 128]), n >> 7
    return out + bytes([n])


def field(number, content):
    """A field of a protocol buffer that has a length."""
    return varint(number << 3 | 2) + varint(len(content)) + content


def piece(text, score=0.0, kind=1):
    return field(1, field(1, text) + struct.pack("<Bf", 0x1D, score) + bytes([0x18, kind]))


def gzip_of(data, size=None):
    lengths = struct.pack("<II", zlib.crc32(data), (len(data) if size is None else size) & 0xFFFFFFFF)
    return b"\x1f\x8b\x08\0\0\0\0\0\0\xff" + deflated(data) + lengths


def zst_of(data, zeros=0, claims=None):
    """A frame of Zstandard's: raw blocks of the data, then blocks that repeat a zero, 4 bytes for 128 KiB."""
    block = 1 << 17
    size = len(data) + zeros if claims is None else claims
    file = b"\x28\xb5\x2f\xfd\xc0" + bytes([0x38]) + struct.pack("<Q", size)
    blocks = [(0, data[at:at + block]) for at in range(0, len(data), block)]
    blocks += [(1, min(block, zeros - at)) for at in range(0, zeros, block)]
    for i, (kind, content) in enumerate(blocks):
        length = content if kind else len(content)
        file += struct.pack("<I", (i + 1 == len(blocks)) | kind << 1 | length << 3)[:3] + (b"\0" if kind else content)
    return file
