# Every target sets up what it needs: on a fresh Debian 12, `make build` is enough.
JOBS ?= $(shell nproc)
export JOBS

.PHONY: build train test format lint clean

build:  ## the program build/release/snug, the library and the examples
	@scripts/setup.sh build
	@cmake --preset release
	@cmake --build --preset release --target snug_products -j $(JOBS)

train: build  ## a small network trained inside its budget
	build/release/examples/train_small_cnn

test:  ## everything that must hold before a commit
	@scripts/test.sh

format:  ## rewrites the sources in the project's format
	@scripts/setup.sh check
	@scripts/sources.sh | xargs -0 clang-format -i

lint:  ## the checks that read the sources without running them
	@scripts/test.sh style tidy

clean:
	rm -rf build
