#!/usr/bin/env python3
"""A server of Argos packages, some of which become damaged or hostile ones, disappear and come back while clients ask for them: a good
client's small requests must be answered rightly, with a 99th percentile of at most five times that before; the server must take no more
than its --memory and 400 MiB, say nothing with control characters, and end within 2 s of SIGTERM.
Usage: bench/hostile_packages.py STARLING [SECONDS, default 120, of which a quarter is spent without hostile packages] [SEED, default 1]"""
import http.client, json, os, pathlib, random, re, shutil, signal, subprocess, sys, tempfile, threading, time
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from hostile import damage, kinds

LANGUAGES = "de fr es it nl pl pt ru sv tr uk cs".split()  # of packages that change; those at the start are named by the rest
BROKEN = "da el fi ga hu id".split()
MEMORY, SPARE, TIMES, END = 256 << 20, 400 << 20, 5, 2
WORDS = "atzmon salam kitab madrasa qalam bayt shams qamar nahr jabal".split()


def metadata(code):
    return json.dumps({"package_version": "1.0", "from_code": code, "to_code": "en", "target_prefix": ""}).encode()


def hostile(code, rng):
    """(label, bytes) again and again: packages of a language with hostile models and files, and damaged ones."""
    good = kinds.argos(metadata(code))
    while True:
        kinds.METADATA = metadata(code)
        for label, files in kinds.argos_cases(rng):
            yield label, files["model.argosmodel"]
            yield "damaged", damage.damaged(rng, good).get("model.argosmodel", b"")
        for label, files in kinds.ct2_cases(rng):
            yield label, kinds.argos(metadata(code), files)["model.argosmodel"]


class Server:
    def __init__(self, starling, packages, directory):
        self.said = directory / "said"
        command = [starling, "serve", "--packages", packages, "--memory", f"{MEMORY >> 20}M", "--listen", "127.0.0.1:0", "--access-log", "",
                   "--cache-mib", "0", "--deadline", "10", "--batch-rows", "8", "--max-source-tokens", "100"]
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=open(self.said, "wb"),
                                        env={**os.environ, "XDG_CACHE_HOME": str(directory / "cache")})
        begin = time.monotonic()
        while not (found := re.search(r"listening at http://127\.0\.0\.1:(\d+)", self.text())):
            if self.process.poll() is not None or time.monotonic() > begin + 30:
                sys.exit("the server does not start:\n" + self.text()[-2000:])
            time.sleep(0.05)
        self.port, self.most = int(found[1]), 0

    def text(self):
        return self.said.read_text(errors="replace")

    def resident(self):
        try:
            self.most = max(self.most, int(re.search(r"VmRSS:\s+(\d+)", open(f"/proc/{self.process.pid}/status").read())[1]) << 10)
        except (OSError, TypeError):
            pass

    def ask(self, source, text, seconds=15):
        """(status, translation), (0, reason) where there was no answer."""
        try:
            client = http.client.HTTPConnection("127.0.0.1", self.port, timeout=seconds)
            body = json.dumps({"q": text, "source": source, "target": "en"})
            client.request("POST", "/translate", body, {"Content-Type": "application/json"})
            answer = client.getresponse()
            body = answer.read()
            client.close()
            return answer.status, json.loads(body).get("translatedText") if answer.status == 200 else body
        except (OSError, http.client.HTTPException, ValueError) as e:
            return 0, repr(e)


def small_requests(server, expected, seconds, wrong):
    times, end = [], time.monotonic() + seconds
    while time.monotonic() < end:
        word = random.choice(WORDS)
        begin = time.monotonic()
        status, text = server.ask("ar", word)
        times.append(time.monotonic() - begin)
        if (status, text) != (200, expected[word]):
            wrong.append(f"{word}: {status} {text!r:.200}")
        server.resident()
        time.sleep(0.02)
    times.sort()
    return len(times), 1000 * times[len(times) // 2], 1000 * times[int(0.99 * len(times))], 1000 * times[-1]


def main():
    starling, seconds, seed = os.path.abspath(sys.argv[1]), float((sys.argv + ["120"])[2]), int((sys.argv + ["120", "1"])[3])
    work = pathlib.Path(tempfile.mkdtemp())
    packages, failures, wrong, over = work / "packages", [], [], threading.Event()
    statuses, changes = {}, {"hostile": 0, "removed": 0, "good": 0, "reloaded": 0}
    packages.mkdir()
    try:
        (packages / "good.argosmodel").write_bytes(kinds.argos(metadata("ar"))["model.argosmodel"])
        for code in LANGUAGES:
            (packages / f"{code}.argosmodel").write_bytes(kinds.argos(metadata(code))["model.argosmodel"])
        for code in BROKEN:
            rng = random.Random(f"{seed} {code}")
            made = hostile(code, rng)
            (packages / f"{code}\033[2J.argosmodel").write_bytes([next(made)[1] for _ in range(rng.randrange(1, 40))][-1])
        server = Server(starling, packages, work)
        expected = {word: server.ask("ar", word)[1] for word in WORDS}
        alone = small_requests(server, expected, seconds / 4, wrong)

        def disturb():
            rng = random.Random(seed)
            made = {code: hostile(code, random.Random(f"{seed} {code}")) for code in LANGUAGES}
            while not over.wait(0.25):
                code, kind = rng.choice(LANGUAGES), rng.choice(("hostile",) * 5 + ("removed", "good", "reloaded"))
                changes[kind] += 1
                path = packages / f"{code}.argosmodel"
                if kind == "hostile":
                    (work / "new").write_bytes(next(made[code])[1])
                    (work / "new").replace(path)
                elif kind == "removed":
                    path.unlink(missing_ok=True)
                elif kind == "good":
                    path.write_bytes(kinds.argos(metadata(code))["model.argosmodel"])
                else:
                    server.process.send_signal(signal.SIGHUP)

        def ask(number):
            rng = random.Random(f"{seed} asks {number}")
            while not over.is_set():
                status, text = server.ask(rng.choice(LANGUAGES + BROKEN), rng.choice(WORDS))
                statuses[status] = statuses.get(status, 0) + 1
                if status not in (200, 400, 429, 503, 504):
                    failures.append(f"status {status}: {text!r:.200}")

        threads = [threading.Thread(target=disturb), *(threading.Thread(target=ask, args=(n,)) for n in range(2))]
        for t in threads:
            t.start()
        beside = small_requests(server, expected, seconds * 3 / 4, wrong)
        over.set()
        for t in threads:
            t.join()
        begin = time.monotonic()
        server.process.send_signal(signal.SIGTERM)
        try:
            status = server.process.wait(30)
        except subprocess.TimeoutExpired:
            server.process.kill()
            status = "none within 30 s"
        took, said = time.monotonic() - begin, server.said.read_bytes()
    finally:
        shutil.rmtree(work)
    for name, figures in (("before", alone), ("beside", beside)):
        print("{}: {} small requests, p50 {:.1f} ms, p99 {:.1f} ms, longest {:.1f} ms".format(name, *figures))
    print(f"packages changed: {changes}; answers for them: {dict(sorted(statuses.items()))}")
    print(f"wrong answers: {len(wrong)}; p99 {beside[2] / alone[2]:.1f} times ({TIMES} are allowed); most memory {server.most >> 20} MiB "
          f"({(MEMORY + SPARE) >> 20} are allowed); SIGTERM: exit status {status} after {took:.1f} s ({END} are allowed)")
    failures += wrong
    if beside[2] > TIMES * alone[2]:
        failures.append("small requests wait too long")
    if server.most > MEMORY + SPARE:
        failures.append("too much memory")
    if status != 0 or took > END:
        failures.append("SIGTERM")
    failures += [f"control characters: {line!r:.200}" for line in said.split(b"\n") if any(byte < 32 and byte != 9 for byte in line)]
    for failure in failures[:20]:
        print("FAILED:", failure)
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
