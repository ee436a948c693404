#!/usr/bin/env python3
"""Cleans a text once to the end, and once while it is killed again and again at random times; compares all files byte by byte. Prints
the peak memory of the first, and how long both took.
Usage: bench/clean_killed.py STARLING TEXT.tsv SOURCE_LANGUAGE TARGET_LANGUAGE [KILLS, default 10] [MEMORY, default 500M]
[SEED, default 1] [OPTION of clean, such as --clean.near-copies=0.8]..."""
import json, os, pathlib, random, resource, signal, subprocess, sys, tempfile, time


def content(path):
    """The bytes of a file, without what differs from start to start."""
    if path.name == "train.yml":
        return path.read_bytes().replace(str(path.parent).encode(), b"")
    if path.name != "clean.json":
        return path.read_bytes()
    report = json.loads(path.read_text(encoding="utf8"))
    return json.dumps({key: report[key] for key in report if key not in ("seconds", "pairs_judged_before")}).encode()


def main():
    starling, text, source, target = sys.argv[1:5]
    options = [argument for argument in sys.argv[5:] if argument.startswith("--")]
    numbers = [argument for argument in sys.argv[5:] if not argument.startswith("--")]
    kills, memory, seed = (numbers + ["10", "500M", "1"][len(numbers) :])[:3]
    rng = random.Random(int(seed))

    def start(output):
        return subprocess.Popen([starling, "clean", "--data.tsv", text, "--data.source-language", source, "--data.target-language", target,
                                 "--memory", memory, "-o", output, *options], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    with tempfile.TemporaryDirectory(dir=os.path.dirname(os.path.abspath(text))) as work:
        begin = time.monotonic()
        whole = start(os.path.join(work, "whole"))
        if whole.wait() != 0:
            sys.exit("it failed")
        seconds = time.monotonic() - begin
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
        print(f"once: {seconds:.1f} s, peak {peak:.0f} MiB of {memory}")
        killed, begin = 0, time.monotonic()
        while True:
            process = start(os.path.join(work, "killed"))
            try:
                left = 4 * seconds / int(kills) * rng.random() if killed < int(kills) else None
                if process.wait(left) != 0:
                    sys.exit("it failed")
                if killed >= int(kills):
                    break
                subprocess.run(["rm", "-r", os.path.join(work, "killed")], check=True)  # it was faster: begin again
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)
                process.wait()
                killed += 1
        print(f"killed {killed} times: {time.monotonic() - begin:.1f} s")
        files = sorted(path.name for path in pathlib.Path(work, "whole").iterdir())
        if files != sorted(path.name for path in pathlib.Path(work, "killed").iterdir()):
            sys.exit("other files")
        other = [name for name in files if content(pathlib.Path(work, "whole", name)) != content(pathlib.Path(work, "killed", name))]
        record = json.loads(pathlib.Path(work, "killed", "clean.json").read_text(encoding="utf8"))
        print(f"{len(files)} files, {len(other)} differ: {' '.join(other) or 'none'}; the last start found "
              f"{record['pairs_judged_before']} of {sum(c['pairs'] for c in record['corpora'])} pairs judged")
        if other:
            sys.exit(1)


if __name__ == "__main__":
    main()
