#!/usr/bin/env python3
"""Models that are damaged or made to harm, of all kinds that Starling reads: what `import` and `translate` do with each, and `train
--from-marian` and `--from-opennmt` with their YAML. None may crash them, take more than 20 seconds, more memory than twice its bytes and
100 MiB, or put control characters on the terminal.
Usage: bench/hostile_models.py STARLING [NUMBER, default 2000] [SEED, default 1] [KIND]; KIND runs that kind alone and prints each case."""
import ctypes, json, multiprocessing, os, pathlib, random, resource, shutil, signal, sys, tempfile, threading, time
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from hostile import damage, kinds

SECONDS, SPARE = 20, 100 << 20
ADDRESSES = 8 << 30  # a limit, so that the machine survives a defect
OUTCOMES = ("refused", "opened", "crashed", "beyond", "slow", "unclean")


def built(kind, own):
    """The built models of a kind, again and again with other sizes, then with accidents too."""
    rng, rounds = random.Random(f"{own} {kind}"), 0
    while True:
        for label, files in kinds.CASES[kind](rng):
            yield label, damage.damaged(rng, files) if rounds > 1 else files
        rounds += 1


def accidents(kind, own):
    rng = random.Random(f"{own} {kind}")
    while True:
        files = rng.choice(kinds.WHOLE[kind] + kinds.WHOLE.get(kind + "-bare", []))
        if kind == "gz" and rng.random() < 0.05:
            files = {**files, "v.spm.gz": damage.POINTER}
        if rng.random() < 0.04:
            name = rng.choice(sorted(files))
            yield "stands in for " + name, {**files, name: rng.choice((damage.POINTER, damage.PAGE))}
        else:
            yield "accident", damage.damaged(rng, files)


def models(number, seed, only):
    """One of each kind in turn: half of them built, half of them damaged."""
    names = [only] if only else sorted(kinds.CASES)
    sources = {name: (built(name, seed), accidents(name, seed)) for name in names}
    for i in range(number):
        name = names[i % len(names)]
        yield i, name, *next(sources[name][i // len(names) % 2])


def measured(command, directory):
    """(status, seconds, most bytes resident, what it said); status None if it had to be killed."""
    out = os.open(directory / "said", os.O_RDWR | os.O_CREAT | os.O_TRUNC)
    begin = time.monotonic()
    child = os.fork()
    if child == 0:
        try:
            resource.setrlimit(resource.RLIMIT_AS, (ADDRESSES, ADDRESSES))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            os.dup2(os.open("/dev/null" if command[1] == "import" else directory / "text", os.O_RDONLY), 0)
            os.dup2(out, 1), os.dup2(out, 2)
            os.execvpe(command[0], command, {**os.environ, "XDG_CACHE_HOME": str(directory / "cache"), "GOMP_SPINCOUNT": "1000"})
        finally:
            os._exit(127)
    late = []
    signal.signal(signal.SIGALRM, lambda *_: (late.append(1), os.kill(child, signal.SIGKILL)))
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    _, status, usage = os.wait4(child, 0)
    signal.setitimer(signal.ITIMER_REAL, 0)
    seconds = time.monotonic() - begin
    said = os.pread(out, 1 << 20, 0)
    os.close(out)
    return None if late else os.waitstatus_to_exitcode(status), seconds, usage.ru_maxrss << 10, said


def run(task):
    starling, work, (number, kind, label, files) = task
    directory = pathlib.Path(tempfile.mkdtemp(dir=work))
    model = directory / "model"
    model.mkdir()
    for name, data in files.items():
        (model / name).write_bytes(data)
    (directory / "text").write_text("a b c\n")
    alone = [name for name in files if name.endswith((".zip", ".argosmodel"))]
    path = str(model / alone[0]) if len(alone) == 1 == len(files) else str(model)
    size = sum(len(data) for data in files.values())
    found = []
    commands = [["import", path, "--output", str(directory / "output")], ["translate", "--model", path, "--threads", "1"]]
    if kind == "yaml":
        configurations = [str(model / name) for name in sorted(files) if name.endswith(".yml")][:1]
        commands += [["train", option, name] for name in configurations for option in ("--from-marian", "--from-opennmt")]
    for command in commands:
        status, seconds, memory, said = measured([starling, *command], directory)
        clean = all(byte >= 32 or byte in b"\n\t\r" for byte in said) and (status == 0 or len(said) < 4096)
        outcome = "slow" if status is None else "beyond" if memory > 2 * size + SPARE else "crashed" if status not in (0, 2, 3) else \
            "unclean" if not clean else "refused" if status else "opened"
        last = said.decode(errors="replace").strip().split("\n")[-1][:200]
        verb = " ".join(command[:2]) if command[0] == "train" else command[0]
        found.append((number, kind, label, verb, outcome, status, seconds, memory / 2**20, size / 2**20, last))
    shutil.rmtree(directory)
    return found


def main():
    starling = os.path.abspath(sys.argv[1])
    number, seed = (int(a) for a in (sys.argv[2:4] + ["2000", "1"][len(sys.argv[2:4]):]))
    only = sys.argv[4] if len(sys.argv) > 4 else None
    table = {kind: dict.fromkeys(OUTCOMES, 0) for kind in ([only] if only else sorted(kinds.CASES))}
    most, longest, bad = 0.0, 0.0, 0
    work, ahead = tempfile.mkdtemp(), threading.Semaphore(8)  # models that are made before their turn

    def tasks():
        for model in models(number, seed, only):
            ahead.acquire()
            yield starling, work, model

    try:
        with multiprocessing.Pool(min(2, os.cpu_count())) as pool:
            for done, found in enumerate(pool.imap_unordered(run, tasks()), 1):
                ahead.release()
                if done % 500 == 0:
                    print(f"{done} of {number} models", file=sys.stderr, flush=True)
                for n, kind, label, verb, outcome, status, seconds, memory, size, last in found:
                    table[kind][outcome] += 1
                    most, longest = max(most, memory - 2 * size), max(longest, seconds)
                    failed = outcome in OUTCOMES[2:]
                    bad += failed
                    if failed or only:
                        print(f"{outcome:8} {n} {kind}: {label}: {verb}: status {status}, {seconds:.1f} s, {memory:.0f} MiB for "
                              f"{size:.1f}; {last!r}", flush=True)
    finally:
        shutil.rmtree(work)
    print(f"{'kind':12} {'tried':>6} " + " ".join(f"{o:>8}" for o in OUTCOMES))
    for kind, counts in [*table.items(), ("all", {o: sum(c[o] for c in table.values()) for o in OUTCOMES})]:
        print(f"{kind:12} {sum(counts.values()):6} " + " ".join(f"{counts[o]:8}" for o in OUTCOMES))
    print(f"{number} models, each imported and translated with; most memory beyond twice the bytes: {most:.0f} MiB (100 are allowed); "
          f"longest: {longest:.1f} s ({SECONDS} are allowed)")
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()
