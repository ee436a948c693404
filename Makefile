# Two commands to try Starling on a fresh Debian 12: `make demo` shows it at work, `make test` runs the tests.
# The build itself is CMake's (CMakePresets.json); this file only strings the steps together.
BUILD ?= build/$(if $(CUDA),cuda,release)
JOBS ?= $(shell nproc)
GENERATOR ?= $(shell command -v ninja >/dev/null 2>&1 && echo Ninja || echo "Unix Makefiles")
# A build directory keeps the generator it was made with.
CONFIGURED = $(wildcard $(BUILD)/CMakeCache.txt)

.PHONY: help packages build whole demo test test-all install package archive wheel clean

help:
	@echo "make demo      install what is missing, build, train on the built-in corpus (minutes), translate, evaluate"
	@echo "make test      install what is missing, build, run the tests (minutes)"
	@echo "make test-all  the whole matrix of tests, on a build of single sources (an hour)"
	@echo "make build     build $(BUILD)/starling and starling-lab; with CUDA=1 for NVIDIA cards too (docs/guides/gpu.md)"
	@echo "make packages  install the Debian packages that the build needs (as root; nothing to do if they are there)"
	@echo "make install   PREFIX=/usr/local: the program, the library and the Python module (docs/guides/library.md)"
	@echo "make package   $(BUILD)/starling_VERSION_ARCHITECTURE.deb: program, library, Python module, man pages"
	@echo "make archive   build/starling-VERSION-linux-x86_64.tar.zst: runs without root on Linux with glibc 2.35 or newer"
	@echo "make wheel     build/starling_nmt-....whl, for pip: the Python module with all that it needs, as make archive; PYTHON=python3"
	@echo "make clean     remove build/ and run-demo/"

packages:
	@tools/packages.sh

ifdef CUDA
PRESET ?= cuda
endif
PRESET ?= release

build: packages
	@cmake --preset $(PRESET) -B "$(BUILD)" $(if $(CONFIGURED),,-G "$(GENERATOR)") --log-level=WARNING >/dev/null
	@cmake --build "$(BUILD)" --parallel $(JOBS) --target starling

demo: build
	@tools/demo.sh "$(BUILD)/starling"

test: build
	@cmake --build "$(BUILD)" --parallel $(JOBS)
	@tools/test.sh "$(BUILD)" --label-exclude matrix

# Each source compiled for itself, with debug information, and every test.
test-all: packages
	@cmake --preset dev $(if $(wildcard build/dev/CMakeCache.txt),,-G "$(GENERATOR)") --log-level=WARNING >/dev/null
	@cmake --build build/dev --parallel $(JOBS)
	@STARLING_WHOLE_MATRIX=1 tools/test.sh build/dev

# With the library and, where pybind11 is installed, the Python module.
whole: build
	@cmake --build "$(BUILD)" --parallel $(JOBS) --target libraries

PREFIX ?= /usr/local
install: whole
	@cmake --install "$(BUILD)" --prefix "$(PREFIX)"

package: whole
	@cd "$(BUILD)" && cpack -G DEB

VERSION := $(shell awk '/^project.starling VERSION/ { print $$3 }' CMakeLists.txt)
archive: packages
	@tools/portable.sh "build/starling-$(VERSION)-linux-x86_64.tar.zst"

PYTHON ?= python3
wheel: packages
	@PYTHONPATH=python "$(PYTHON)" -c 'import build_backend as b; print("build/" + b.build_wheel("build", {"bundled": "yes"}))'

clean:
	rm -rf build run-demo
