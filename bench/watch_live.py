#!/usr/bin/env python3
"""The page of `starling watch` in headless Chromium while runs go on: how long an update of the page takes, and what memory the server and
the page take. The runs are made up; each gets a record every second, until all together have the number asked for.
Usage: bench/watch_live.py STARLING [MINUTES, default 60] [RUNS, default 20] [RECORDS of all runs in the end, default 100000]"""
import json, math, os, pathlib, re, shutil, subprocess, sys, tempfile, threading, time

starling = sys.argv[1]
given = sys.argv[2:] + ["60", "20", "100000"][len(sys.argv) - 2:]
minutes, runs, records = float(given[0]), int(given[1]), int(given[2])
chromium = shutil.which("chromium") or shutil.which("google-chrome")
if not chromium:
    sys.exit("watch_live.py: there is no Chromium")
work = pathlib.Path(tempfile.mkdtemp())
seconds = 60 * minutes
before = max(records // runs - int(seconds), 10)  # records of a run before anybody looks


def line(run, i):
    loss = 2 + 6 * math.exp(-i / 1500) + 0.1 * math.sin(i * (run + 1))
    record = {"schema": 1, "type": "report", "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "step": 10 * i, "epoch": 1,
              "loss": loss, "target_tokens_per_second": 8000 + 100 * math.sin(i), "learning_rate": 1e-3 / math.sqrt(1 + i / 100),
              "gradient_norm": 1 + 0.5 * math.sin(i / 7), "noise_scale": 1e4 + i, "memory_mib": 900.5, "fraction": i / (records / runs),
              "seconds_left": 100}
    text = json.dumps(record) + "\n"
    if i % 100 == 0:
        text += json.dumps({"schema": 1, "type": "validation", "time": record["time"], "step": 10 * i, "metric": "bleu", "best": True,
                            "scores": {"bleu": 30 - 20 * math.exp(-i / 1500)}, "seconds": 3}) + "\n"
    return text


files = []
for run in range(runs):
    directory = work / "runs" / f"run-{run + 1:02}"
    directory.mkdir(parents=True)
    files.append(open(directory / "events.jsonl", "w", buffering=1))
    files[-1].write("".join(line(run, i) for i in range(1, before + 1)))
ended = threading.Event()
written = before * runs


def write():
    global written
    start, i = time.monotonic(), before
    while not ended.wait(max(0.0, start + i - before + 1 - time.monotonic())):
        i += 1
        for run, file in enumerate(files):
            file.write(line(run, i))
        written += runs


log = open(work / "log", "w+")
server = subprocess.Popen([starling, "watch", work / "runs", "--listen", "127.0.0.1:0"], stderr=log)
url = None
while not url:
    if server.poll() is not None:
        sys.exit("watch_live.py: " + (work / "log").read_text())
    time.sleep(0.05)
    url = re.search(r"http://[^;\s]*", (work / "log").read_text())
url = url.group(0)

# Chromium's DevTools protocol: messages end with a zero byte, on descriptors 3 and 4.
to_read, to_write = os.pipe()
from_read, from_write = os.pipe()


def descriptors():
    for fd, place in ((os.dup(to_read), 3), (os.dup(from_write), 4)):
        os.dup2(fd, place)


browser = subprocess.Popen([chromium, "--headless", "--no-sandbox", "--disable-gpu", "--enable-precise-memory-info",
                            "--remote-debugging-pipe", f"--user-data-dir={work / 'profile'}", "--window-size=1280,900"],
                           preexec_fn=descriptors, close_fds=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
incoming = os.fdopen(from_read, "rb")
number = 0


def ask(method, session=None, **params):
    global number
    number += 1
    message = {"id": number, "method": method, "params": params} | ({"sessionId": session} if session else {})
    os.write(to_write, json.dumps(message).encode() + b"\0")
    while True:
        text = bytearray()
        while (byte := incoming.read(1)) != b"\0":
            if not byte:
                sys.exit("watch_live.py: Chromium has ended")
            text += byte
        answer = json.loads(text)
        if answer.get("id") == number:
            return answer.get("result", answer)


try:
    target = ask("Target.createTarget", url=url)["targetId"]
    session = ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
    writer = threading.Thread(target=write)
    writer.start()
    updates, heap, start, told = [], 0, time.monotonic(), 0
    while told <= seconds:
        time.sleep(2)
        value = ask("Runtime.evaluate", session, returnByValue=True, expression="window.starlingWatch ? [starlingWatch.lastUpdateMs, "
                    "performance.memory.usedJSHeapSize, starlingWatch.runs.length] : null")["result"].get("value")
        if not value:
            continue
        updates.append(value[0])
        heap = max(heap, value[1])
        if time.monotonic() - start >= told:
            told += max(seconds / 12, 5)
            resident = re.search(r"VmHWM:\s*(\d+)", pathlib.Path(f"/proc/{server.pid}/status").read_text())
            ordered = sorted(updates)
            print(f"{(time.monotonic() - start) / 60:5.1f} min: {value[2]} runs, {written} records; an update of the page: median "
                  f"{ordered[len(ordered) // 2]:.0f} ms, at most {ordered[-1]:.0f} ms; memory at most: server "
                  f"{int(resident.group(1)) / 1024:.0f} MiB, page's scripts {heap / 2**20:.0f} MiB", flush=True)
finally:
    ended.set()
    browser.kill()
    server.terminate()
    server.wait()
    shutil.rmtree(work, ignore_errors=True)
