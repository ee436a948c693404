"""Builds the wheel of the Python module (PEP 517): the package, its extension and libstarling. It needs nothing but the standard library.

The build directory is build/python-TAG, so that a second build is quick; `pip install . --config-settings build-dir=DIR` chooses another.
With bundled=yes (`make wheel`) the wheel also has the libraries that libstarling needs, but for glibc, libstdc++ and NVIDIA's, and no MPI:
pip installs it on any x86-64 Linux with glibc 2.35 and GCC 12's libstdc++, or newer, for the version of Python that made it.
"""

import base64
import hashlib
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NAME = "starling_nmt"


def _version():
    text = (ROOT / "CMakeLists.txt").read_text()
    return re.search(r"project\(starling VERSION ([0-9.]+)", text).group(1)


GLIBC = (2, 35)  # of the oldest system for a bundled wheel, as for the archive of tools/portable.sh
# What such a system has.
SYSTEM = re.compile(r"(ld-linux-x86-64|libc|libm|libdl|librt|libpthread|libresolv|libstdc\+\+|libgcc_s)\.so")


def _tag(bundled=False):
    python = f"cp{sys.version_info.major}{sys.version_info.minor}"
    platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    return f"{python}-{python}-" + (platform.replace("linux", f"manylinux_{GLIBC[0]}_{GLIBC[1]}") if bundled else platform)


def _metadata():
    return (
        f"Metadata-Version: 2.1\nName: starling-nmt\nVersion: {_version()}\n"
        "Summary: Neural machine translation: translates and trains\nRequires-Python: >=3.9\n"
    )


def _build(directory, target, bundled):
    """Builds and installs what the package has into the directory `target`."""
    if not shutil.which("cmake"):
        raise SystemExit("cmake is missing; the README names the packages to install")
    configure = ["cmake", "-S", ROOT, "-B", directory, "-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_UNITY_BUILD=ON", "-DSTARLING_TESTS=OFF",
                 "-DSTARLING_PYTHON=REQUIRED", f"-DPython3_EXECUTABLE={sys.executable}", f"-DPYTHON_EXECUTABLE={sys.executable}"]
    if bundled:  # the old kind of RPATH: libraries that libraries need are found by it too
        configure += ["-DSTARLING_MPI=OFF", *(f"-DCMAKE_{kind}_LINKER_FLAGS=-Wl,--disable-new-dtags" for kind in ("SHARED", "MODULE"))]
    subprocess.run(configure, check=True, stdout=sys.stderr)
    parallel = str(os.cpu_count() or 1)
    subprocess.run(["cmake", "--build", directory, "--target", "starling_python", "--parallel", parallel], check=True, stdout=sys.stderr)
    install = ["cmake", "--install", directory, "--prefix", target, "--strip", "--component"]
    for component in ("python", "library"):
        subprocess.run([*install, component], check=True, stdout=sys.stderr)


def _files_of(installed):
    """Yields the names in the wheel and the paths of the files. The library is beside the extension, by the name it is asked for."""
    package = next(installed.rglob("starling/__init__.py")).parent
    for path in sorted(package.iterdir()):
        if path.is_file():
            yield f"starling/{path.name}", path
    library = next(path for path in installed.rglob("libstarling.so.*") if path.is_symlink())
    yield f"starling/{library.name}", library.resolve()


def _bundle(contents, directory):
    """Adds the libraries that the files need to `contents`, beside them, and checks that nothing else is needed."""
    package = Path(directory) / "starling"
    package.mkdir()
    for name, data in contents.items():
        (Path(directory) / name).write_bytes(data)
    extension = next(package.glob("_starling*.so"))

    def needed():
        lines = subprocess.run(["ldd", extension], check=True, capture_output=True, text=True).stdout.splitlines()
        found = [line.split(" => ") for line in lines if " => " in line]
        return {name.strip(): path.split(" (")[0].strip() for name, path in found if not SYSTEM.search(name)}

    for name, path in needed().items():
        if Path(path).parent != package:
            contents[f"starling/{name}"] = Path(path).read_bytes()
            (package / name).write_bytes(contents[f"starling/{name}"])
    outside = [path for path in needed().values() if Path(path).parent != package]
    if outside:
        raise SystemExit(f"the wheel would need {', '.join(outside)}, which it has but does not find")
    for path in package.glob("*.so*"):
        symbols = subprocess.run(["objdump", "-T", path], check=True, capture_output=True, text=True).stdout
        newest = max((tuple(map(int, each)) for each in re.findall(r"GLIBC_(\d+)\.(\d+)", symbols)), default=(0, 0))
        if newest > GLIBC:
            raise SystemExit(f"{path.name} needs glibc {newest[0]}.{newest[1]}, which is newer than {GLIBC[0]}.{GLIBC[1]}")


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    info = f"{NAME}-{_version()}.dist-info"
    directory = Path(metadata_directory) / info
    directory.mkdir()
    (directory / "METADATA").write_text(_metadata())
    return info


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    settings = config_settings or {}
    bundled = settings.get("bundled") == "yes"
    tag = _tag(bundled)
    directory = Path(settings.get("build-dir", ROOT / "build" / f"python-{tag}"))
    info = f"{NAME}-{_version()}.dist-info"
    wheel = f"{NAME}-{_version()}-{tag}.whl"
    with tempfile.TemporaryDirectory() as temporary:
        installed = Path(temporary)
        _build(directory, installed, bundled)
        contents = {name: path.read_bytes() for name, path in _files_of(installed)}
        if bundled:
            with tempfile.TemporaryDirectory() as unpacked:
                _bundle(contents, unpacked)
    contents[f"{info}/METADATA"] = _metadata().encode()
    contents[f"{info}/WHEEL"] = f"Wheel-Version: 1.0\nGenerator: build_backend\nRoot-Is-Purelib: false\nTag: {tag}\n".encode()
    record = ""
    for name, data in contents.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        record += f"{name},sha256={digest},{len(data)}\n"
    contents[f"{info}/RECORD"] = (record + f"{info}/RECORD,,\n").encode()
    with zipfile.ZipFile(Path(wheel_directory) / wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in contents.items():
            entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))  # equal files, equal wheels
            entry.external_attr = (0o755 if ".so" in name else 0o644) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, data)
    return wheel


def build_sdist(sdist_directory, config_settings=None):
    raise NotImplementedError("there is no source distribution: install from a clone of the repository")
