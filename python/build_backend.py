"""Builds the wheel of the Python module (PEP 517): the package, its extension and libstarling. It needs nothing but the standard library.

The build directory is build/python-TAG, so that a second build is quick; `pip install . --config-settings build-dir=DIR` chooses another.
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


def _tag():
    python = f"cp{sys.version_info.major}{sys.version_info.minor}"
    return f"{python}-{python}-{sysconfig.get_platform().replace('-', '_').replace('.', '_')}"


def _metadata():
    return (
        f"Metadata-Version: 2.1\nName: starling-nmt\nVersion: {_version()}\n"
        "Summary: Neural machine translation: translates and trains\nRequires-Python: >=3.9\n"
    )


def _build(directory, target):
    """Builds and installs what the package has into the directory `target`."""
    if not shutil.which("cmake"):
        raise SystemExit("cmake is missing; the README names the packages to install")
    configure = ["cmake", "-S", ROOT, "-B", directory, "-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_UNITY_BUILD=ON", "-DSTARLING_TESTS=OFF",
                 "-DSTARLING_PYTHON=REQUIRED", f"-DPython3_EXECUTABLE={sys.executable}", f"-DPYTHON_EXECUTABLE={sys.executable}"]
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


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    info = f"{NAME}-{_version()}.dist-info"
    directory = Path(metadata_directory) / info
    directory.mkdir()
    (directory / "METADATA").write_text(_metadata())
    return info


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    directory = Path((config_settings or {}).get("build-dir", ROOT / "build" / f"python-{_tag()}"))
    info = f"{NAME}-{_version()}.dist-info"
    wheel = f"{NAME}-{_version()}-{_tag()}.whl"
    with tempfile.TemporaryDirectory() as temporary:
        installed = Path(temporary)
        _build(directory, installed)
        contents = {name: path.read_bytes() for name, path in _files_of(installed)}
    contents[f"{info}/METADATA"] = _metadata().encode()
    contents[f"{info}/WHEEL"] = f"Wheel-Version: 1.0\nGenerator: build_backend\nRoot-Is-Purelib: false\nTag: {_tag()}\n".encode()
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
