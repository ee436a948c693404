#!/usr/bin/env python3
"""Run directories that are made to harm, watched beside a good one: `starling watch` must not crash, must answer every request within 2 s
and hear SIGTERM within 2 s, take no more than 400 MiB, go on showing the good run, and show nothing of files outside the directories.
Usage: bench/hostile_runs.py STARLING [NUMBER, default 300] [SEED, default 1] [KIND]; KIND makes runs of that kind alone."""
import http.client, json, os, pathlib, random, re, resource, shutil, signal, subprocess, sys, tempfile, time

TOGETHER, SECONDS, SETTLE = 8, 2, 12  # runs of one server; for an answer and for the end; until the good run must be shown
MEMORY, ADDRESSES = 400 << 20, 3 << 30
SECRET = "kept-from-everybody"
START = '{"schema":1,"type":"start","time":"2026-11-27T10:00:00Z","step":0,"parameters":1,"backend":"cpu","pairs":1}\n'


def report(step, **more):
    return json.dumps({"schema": 1, "type": "report", "time": "2026-11-27T10:00:00Z", "step": step, "loss": 1.5, **more}) + "\n"


def validation(step, **more):
    record = {"schema": 1, "type": "validation", "step": step, "scores": {"bleu": 1}, "metric": "bleu", "best": True, **more}
    return json.dumps(record) + "\n"


def write(run, name, content):
    path = run / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8", "surrogateescape"))


def outside_of(run):
    """The directory of files that the page must not show, wherever the run's name puts it."""
    return next(parent / "outside" for parent in run.parents if (parent / "outside").is_dir())


# ---- Kinds of runs: each gets a directory that has a record, and a generator of random numbers ----
def yaml_cycle(run, rng):
    write(run, "config.yml", rng.choice(["a: &a {b: *a}\n", "&a [*a]\n", "a: &a\n  - *a\n  - *a\n", "? &k {x: *k}\n: 1\n"]))


def yaml_bomb(run, rng):
    wide, text = rng.randint(5, 10), "a0: &a0 [1, 2, 3]\n"
    for level in range(1, rng.randint(6, 14)):
        text += f"a{level}: &a{level} [" + ", ".join([f"*a{level - 1}"] * wide) + "]\n"
    long = 'a: &a "' + "x" * rng.choice([1000, 100_000]) + '"\n' + "".join(f"k{i}: *a\n" for i in range(20_000))
    write(run, "config.yml", rng.choice([text, long]))


def yaml_deep(run, rng):
    n = rng.choice([100, 10_000, 200_000])
    steps = "a:\n" + "".join(" " * i + "- b:\n" for i in range(min(n, 600)))
    pieces = ("[", "{a: ", "- ", "? ", "!!", "&a ", "'", "|\n", "%", "a: ", "\t")
    write(run, "config.yml", rng.choice([steps] + [piece * n for piece in pieces]))


def yaml_wide(run, rng):
    keys = "k" * rng.choice([10, 100_000]) + ":\n" + "".join(f"  k{i}: {i}\n" for i in range(12_000))
    nested = "".join(" " * i + "k" * 4000 + ":\n" for i in range(30)) + "".join(" " * 30 + f"x{i}: 1\n" for i in range(3000))
    pieces = "a: [" + "[], " * 60_000 + "]\n"
    write(run, "config.yml", rng.choice([keys, nested, pieces, "a: " + "x" * 250_000, "x\n" * 100_000, "<<: {a: 1}\n" * 5000]))


TEXTS = ["config.yml", "train.log", "validations/0000010.txt", "validations/sentences.json"]


def fifo(run, rng):
    for name in rng.sample([*TEXTS, "events.jsonl"], 2):
        (run / name).parent.mkdir(exist_ok=True)
        (run / name).unlink(missing_ok=True)
        os.mkfifo(run / name)


def links(run, rng):
    outside = outside_of(run)
    targets = [outside / "text", outside / "yaml", "/dev/zero", "/dev/tty", "/proc/self/environ", "/proc/kmsg", run]
    for name in TEXTS:
        (run / name).parent.mkdir(exist_ok=True)
        os.symlink(rng.choice([*targets, run / name]), run / name)
    if rng.random() < 0.5:
        shutil.rmtree(run / "validations")
        os.symlink(outside, run / "validations")


def foreign_texts(run, rng):
    outside = outside_of(run) / "text"
    write(run, "config.yml", f"valid: {{source: {outside}, target: {outside}, keep-translations: true}}\n")
    write(run, "validations/0000010.txt", "a\n" * len(outside.read_text().splitlines()))
    write(run, "validations/sentences.json", json.dumps({"sentences": [{"line": 0, "source": str(outside), "file": str(outside)}]}))


def sparse(run, rng):
    name = rng.choice(["events.jsonl", *TEXTS])
    (run / name).parent.mkdir(exist_ok=True)
    with open(run / name, "ab") as file:
        file.truncate(rng.choice([1 << 24, 1 << 32, 1 << 40]))


def deep_json(run, rng):
    n = rng.choice([9, 1000, 300_000])
    lists = "[" * n + "]" * n
    write(run, "events.jsonl", START + rng.choice([lists, '{"a":' * n, '{"type":"report","step":1,"x":' + lists + "}"]) + "\n" + report(1))
    write(run, "validations/0000010.txt", "a\n")
    write(run, "validations/sentences.json", '{"sentences":' + "[" * n)


def huge_records(run, rng):
    n = rng.choice([10_000, 300_000, 3_000_000])
    record = rng.choice(['{"type":"validation","step":1,"scores":{"a":[' + "[]," * n + "[]]}}\n",
                         '{"type":"validation","step":1,"scores":{' + ",".join(f'"m{i}":{i}' for i in range(min(n, 60_000))) + "}}\n",
                         '{"type":"report","step":1,' + ",".join(f'"m{i}":{i}' for i in range(min(n, 60_000))) + "}\n",
                         '{"type":"communication","step":1,"seconds":1,"waited":[' + "1," * min(n, 400_000) + "1]}\n",
                         '{"type":"stop","step":1,"reason":"' + "r" * n + '"}\n', "x" * (20 * n) + "\n", "\n" * n])
    write(run, "events.jsonl", START + record * max(1, min(12, 40_000_000 // len(record))) + report(2))


def many_records(run, rng):
    kind = rng.choice([report, validation])
    more = {} if kind is report else {"by_text": {f"en:x{i} t": {"bleu": i, "chrf": 1} for i in range(rng.choice([1, 40]))}}
    write(run, "events.jsonl", START + "".join(kind(i, **more) for i in range(rng.choice([1000, 20_000]))))


VALUES = [None, True, -1, 1e308, -1e308, 1 << 70, 5.5, "x", "\u202e<b>", [], {}, [[]], {"a": []}, "9" * 400, "2026-99-99T00:00:00Z"]


def wrong_types(run, rng):
    keys = ("schema type time step loss scores by_text metric best seconds waited bytes_per_update reason back_to fraction seconds_left "
            "parameters learning_rate directory").split()
    types = ["start", "report", "communication", "validation", "checkpoint", "guard", "stop"]
    lines = []
    for _ in range(300):
        record = {"type": rng.choice(types), "step": rng.choice([1, 2, 3])}
        for key in rng.sample(keys, rng.randint(0, 8)):
            record[key] = rng.choice(VALUES)
        lines.append(json.dumps(record))
    write(run, "events.jsonl", "\n".join(lines) + "\n")
    write(run, "validations/0000010.txt", "a\n")
    write(run, "validations/sentences.json", json.dumps({"sentences": rng.choice([*VALUES, [{"line": v, "source": v} for v in VALUES]])}))


def no_numbers(run, rng):
    words = ["NaN", "Infinity", "-Infinity", "1e999", "-1e999", "1e-999", "0x10", "01", "-", "1." + "0" * 5000]
    write(run, "events.jsonl", START + "".join('{"type":"%s","step":%s,"loss":%s,"scores":{"bleu":%s},"seconds":%s}\n' % (
        rng.choice(["report", "validation", "guard"]), *(rng.choice(words + ["1", "2"]) for _ in range(4))) for _ in range(500)))


def binary(run, rng):
    for name in ["events.jsonl", *TEXTS]:
        if name == "events.jsonl" or rng.random() < 0.7:
            write(run, name, rng.randbytes(rng.choice([10, 5000, 300_000])))


def damaged(run, rng):
    good = bytearray((START + "".join(report(i) + validation(i) for i in range(300))).encode())
    for _ in range(rng.choice([1, 30, 1000])):
        good[rng.randrange(len(good))] = rng.randrange(256)
    write(run, "events.jsonl", bytes(good[:rng.randint(1, len(good))]))
    config = bytearray(b"train:\n  max-steps: 5\nvalid:\n  sets:\n    - {source: a, target: b}\n" * 20)
    for _ in range(20):
        config[rng.randrange(len(config))] = rng.randrange(256)
    write(run, "config.yml", bytes(config))


def many_files(run, rng):
    (run / "validations").mkdir()
    for i in range(rng.choice([100, 5000])):
        write(run, f"validations/{rng.choice(['', '0', '-', '9' * 25, 'x'])}{i}.txt", "a\nb\n")


def long_texts(run, rng):
    for step in range(1, 11):
        write(run, f"validations/{step:07}.txt", rng.choice(["x" * 10_000_000, "y\n" * 4_000_000, "\n" * 100]))
    write(run, "train.log", "l" * 5_000_000)


def directories(run, rng):
    for name in TEXTS:
        (run / name).mkdir(parents=True)


KINDS = [yaml_cycle, yaml_bomb, yaml_deep, yaml_wide, fifo, links, foreign_texts, sparse, deep_json, huge_records, many_records,
         wrong_types, no_numbers, binary, damaged, many_files, long_texts, directories]
NAMES = ["run", "a\x1b[2Jb", "<img src=x onerror=alert(1)>", 'q"\\', "\udcff\udcfe", "n\nl", "\u202eabc", "x" * 240,
         "&amp;", "{{}}", "%s%n", "-x"]


class Failure(Exception):
    pass


def get(port, path):
    """The body of an answer, and how long it took."""
    begin = time.monotonic()
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=SECONDS)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        body = answer.read()
    except OSError as error:
        raise Failure(f"{path}: {error or type(error).__name__} after {time.monotonic() - begin:.1f} s") from error
    finally:
        connection.close()
    seconds = time.monotonic() - begin
    if answer.status != 200 or seconds > SECONDS:
        raise Failure(f"{path}: status {answer.status} after {seconds:.1f} s")
    return body, seconds


def limits():
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESSES, ADDRESSES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def watched(starling, root, found):
    """Watches the runs below a directory, among them a good one; adds to what was found, and raises Failure."""
    good = root / "runs" / "good"
    write(good, "events.jsonl", START + report(1))
    said = open(root / "said", "w+b")
    server = subprocess.Popen([starling, "watch", root / "runs", "--listen", "127.0.0.1:0"], preexec_fn=limits,
                              stdin=subprocess.DEVNULL, stdout=said, stderr=said)
    killed = True
    try:
        begin = time.monotonic()
        while not (port := re.search(rb"http://127.0.0.1:(\d+)/", (root / "said").read_bytes())):
            if server.poll() is not None or time.monotonic() - begin > 10:
                raise Failure(f"did not start: {(root / 'said').read_bytes()[-300:]!r}")
            time.sleep(0.05)
        port, shown = int(port[1]), False
        with open(good / "events.jsonl", "a", encoding="utf-8") as file:
            file.write(report(2, loss=0.25))
        begin = time.monotonic()
        while time.monotonic() - begin < 2 or not shown:
            if time.monotonic() - begin > SETTLE:
                raise Failure(f"the good run was not read within {SETTLE} s")
            for path in ("/", "/data.json", "/metrics", "/health"):
                body, seconds = get(port, path)
                found["answers"] += 1
                found["longest"] = max(found["longest"], seconds)
                if SECRET.encode() in body:
                    raise Failure(f"{path} shows a file from outside")
                if b"\x1b" in body or (path == "/metrics" and b"\n\n" in body):
                    raise Failure(f"{path} has control characters")
                if path == "/data.json":
                    data = json.loads(body)
                    runs = {run["name"]: run for run in data["runs"]}
                    if sorted(runs) != sorted(data["names"]):
                        raise Failure("names and runs differ")
                    shown = runs.get("good", {}).get("last", {}).get("loss") == 0.25
                    found["bytes"] = max(found["bytes"], len(body))
            time.sleep(0.1)
        begin = time.monotonic()
        server.send_signal(signal.SIGTERM)
        while os.waitid(os.P_PID, server.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
            if time.monotonic() - begin > SECONDS:
                raise Failure(f"SIGTERM was not heard within {SECONDS} s")
            time.sleep(0.01)
        found["end"] = max(found["end"], time.monotonic() - begin)
        _, status, usage = os.wait4(server.pid, 0)
        server.returncode, killed = os.waitstatus_to_exitcode(status), False
        found["memory"] = max(found["memory"], usage.ru_maxrss << 10)
        if server.returncode != 0 or usage.ru_maxrss << 10 > MEMORY:
            raise Failure(f"status {server.returncode}, {usage.ru_maxrss >> 10} MiB; {(root / 'said').read_bytes()[-300:]!r}")
    except Failure as failure:
        raise Failure(f"{failure}; ended by {server.poll()}") from failure
    finally:
        if killed:
            server.kill()
            server.wait()
        said.close()


def main():
    starling = os.path.abspath(sys.argv[1])
    number, seed = (int(a) for a in (sys.argv[2:4] + ["300", "1"][len(sys.argv[2:4]):]))
    kinds = [kind for kind in KINDS if len(sys.argv) < 5 or kind.__name__ == sys.argv[4]]
    rng, bad = random.Random(seed), 0
    found = {"answers": 0, "longest": 0.0, "end": 0.0, "memory": 0, "bytes": 0}
    for first in range(0, number, TOGETHER):
        root = pathlib.Path(tempfile.mkdtemp())
        try:
            write(root, "outside/text", (SECRET + "\n") * 20)
            write(root, "outside/yaml", f"a: {SECRET}\n")
            write(root, "outside/0000020.txt", (SECRET + "\n") * 5)
            made = []
            for i in range(first, min(number, first + TOGETHER)):
                kind = kinds[i % len(kinds)]
                run = root / "runs" / f"{i}{rng.choice(NAMES)}"
                write(run, "events.jsonl", START + report(1))
                kind(run, rng)
                made.append(kind.__name__)
            try:
                watched(starling, root, found)
            except Failure as failure:
                bad += 1
                print(f"runs {first} to {first + len(made) - 1} ({', '.join(made)}): {failure}", flush=True)
        finally:
            shutil.rmtree(root)
    print(f"{number} runs of {len(kinds)} kinds, {TOGETHER} at a time beside a good one: {bad} servers failed; "
          f"{found['answers']} answers, the longest after {found['longest']:.2f} s and {found['bytes'] / 2**20:.1f} MiB long; "
          f"SIGTERM heard after {found['end']:.2f} s at most; {found['memory'] / 2**20:.0f} MiB at most ({MEMORY >> 20} are allowed)")
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()
