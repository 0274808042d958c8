# Every target sets up what it needs: on a fresh Debian 12, `make build` is enough.
JOBS ?= $(shell nproc)
export JOBS

.PHONY: build train test check format lint clean

build:  ## the program build/release/snug, the library and the examples
	@scripts/setup.sh build
	@cmake --preset release
	@cmake --build --preset release --target snug_products -j $(JOBS)

train: build  ## a small network trained on handwritten digits inside 3 MB
	build/release/snug train small-cnn --budget 3MB --epochs 40 --schedule cosine

test:  ## style, build, all but the longest tests, an outside project, the CUDA plugin
	@scripts/test.sh

check:  ## what also must hold before a commit, and takes longer: the longest tests, sanitizers, clang-tidy, the report in a browser
	@scripts/test.sh browser long asan tidy

format:  ## rewrites the sources in the project's format
	@scripts/setup.sh check
	@scripts/sources.sh | xargs -0 clang-format -i

lint:  ## the checks that read the sources without running them
	@scripts/test.sh style tidy

clean:
	rm -rf build
