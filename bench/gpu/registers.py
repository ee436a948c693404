#!/usr/bin/env python3
"""A table of the registers, shared memory and spills of each kernel, as ptxas reports them, and of the threads that fit on a multiprocessor
by its registers. Needs nvcc, no card. Usage: bench/gpu/registers.py [sm_90] [NAME...], names of files in src/backend/cuda/kernels"""
import pathlib
import re
import subprocess
import sys
import tempfile

REGISTERS, MOST_THREADS = 65536, 2048  # of a multiprocessor since compute capability 8.0
root = pathlib.Path(__file__).resolve().parents[2]
arguments = sys.argv[1:]
architecture = arguments.pop(0) if arguments and arguments[0].startswith("sm_") else "sm_90"
folder = root / "src/backend/cuda/kernels"
sources = [folder / f"{name}.cu" for name in arguments] or sorted(folder.glob("*.cu"))

print(f"| kernel ({architecture}) | registers | threads on a multiprocessor | static shared memory, bytes | stack, bytes | spilled bytes |")
print("|---|---|---|---|---|---|")
spilled = 0
with tempfile.TemporaryDirectory() as scratch:
    for source in sources:
        command = ["nvcc", "-std=c++20", f"-I{root / 'src'}", f"-arch={architecture}", "-cubin", "--expt-relaxed-constexpr", "-Xptxas=-v",
                   str(source), "-o", f"{scratch}/out.cubin"]
        report = subprocess.run(command, capture_output=True, text=True)
        if report.returncode:
            sys.exit(report.stderr)
        names = subprocess.run(["c++filt"], input=report.stderr, capture_output=True, text=True).stdout
        for part in names.split("Compiling entry function ")[1:]:
            name = re.match(r"'(.*?)' for", part).group(1)
            name = re.sub(r"\(anonymous namespace\)::|starling::cuda::kernels::|^void |\(starling.*", "", name)
            name = re.sub(r"\([^()]*\)$", "", name)
            registers = int(re.search(r"Used (\d+) registers", part).group(1))
            spills = sum(int(n) for n in re.findall(r"(\d+) bytes spill", part))
            shared = re.search(r"(\d+) bytes smem", part)
            stack = int(re.search(r"(\d+) bytes stack frame", part).group(1))
            fit = min(REGISTERS // (-(-registers // 8) * 8) // 32 * 32, MOST_THREADS)
            print(f"| {source.stem}: {name} | {registers} | {fit} | {shared.group(1) if shared else 0} | {stack} | {spills} |")
            spilled += spills
sys.exit(f"{spilled} bytes are spilled" if spilled else 0)
