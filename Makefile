# hightide. Start with 'make demo'; 'make help' lists the rest. A new machine needs Go, Python 3.11
# to 3.13 with its venv module, Node.js 20+, gcc and git; scripts/setup gets everything else, once.
#
#     heap/, device/ (C) ─┐
#     web/ (TS) ─────────┼─ embedded ─▶ bin/hightide (static) ─▶ dist/hightide-*.whl
#     agent/ (Python) ───┘
.DEFAULT_GOAL := build
SHELL := /bin/bash
CACHE := $(or $(HIGHTIDE_CACHE),$(HOME)/.cache/hightide)
TORCH := $(shell awk '/^[0-9]/ { print; exit }' requirements/torch.versions)
PYTHON := $(CACHE)/torch-$(TORCH)/bin/python
TOOLS := $(CACHE)/tools/bin
VERSION := $(shell cat VERSION)
PREFIX ?= $(HOME)/.local
LDFLAGS := -s -w -X hightide/internal/engine.Version=$(VERSION)
SMALLER := $(shell sed '/^\#/d;s|.*|-gcflags=&=-l|' packaging/cold-packages)
WEB_SOURCES := $(shell find web -type f -not -path '*/node_modules/*' -not -path 'web/dist/*' 2>/dev/null) docs/findings.md

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: heap device web binary ## build bin/hightide, with the heap sampler, the imaginary GPU, the agent and the report inside

demo: ## set up, build, record a real PyTorch training that leaks, and imagine one on every GPU
	@scripts/setup torch node
	@$(MAKE) --no-print-directory build
	@echo '$$ hightide run --name demo -- python examples/digits_leak.py'
	@PATH=$(dir $(PYTHON)):$$PATH bin/hightide run --name demo -- python examples/digits_leak.py
	@echo
	@echo '$$ hightide imagine --gpu all --name demo-gpt -- python examples/gpt.py'
	@PATH=$(dir $(PYTHON)):$$PATH bin/hightide imagine --gpu all --name demo-gpt -- python examples/gpt.py
	@echo
	@echo 'Again: bin/hightide show demo, bin/hightide show demo-gpt. To have it on PATH: make install'

test: ## run every test of the project
	@scripts/setup torches frameworks notebook trackers device tools go node chromium slurm team ray steps staticcheck nfpm site edge deploy vulnerabilities api platforms serving xla tensorflow cupy
	@$(MAKE) --no-print-directory build
	@$(TOOLS)/python scripts/check.py

fuzz: ## fuzz every decoder, two minutes each; FUZZ_SECONDS=600: longer
	@python3 scripts/fuzz.py $(or $(FUZZ_SECONDS),120)

lint: ## run the linters alone
	@scripts/setup torch tools node staticcheck
	@$(TOOLS)/python scripts/check.py --only lint

bench: ## measure every bar; figures go to bench/results, see bench/README.md
	@scripts/setup torch bench frameworks fidelity node
	@$(MAKE) --no-print-directory build
	@$(PYTHON) bench/all.py

bench-beside: ## REF=COMMIT: did commands become slower since? Both builds in turns; ends with 1 where one did by 5 %
	@test -n "$(REF)" || { echo 'name the commit: make bench-beside REF=COMMIT'; exit 2; }
	@scripts/setup torch node
	@$(MAKE) --no-print-directory build
	@$(PYTHON) bench/commands.py $(REF)

bench-fidelity: ## run the fidelity suite, every workload twice on imaginary GPUs; SMALL=1: in small sizes
	@scripts/setup torch fidelity node
	@$(MAKE) --no-print-directory build
	@$(CACHE)/fidelity/bin/python bench/fidelity.py $(if $(SMALL),--small)

pictures: ## take the pictures of the live pages in docs/images anew, of small real recordings
	@scripts/setup torch node chromium
	@$(MAKE) --no-print-directory build
	@HIGHTIDE_TEST_PYTHON=$(PYTHON) node web/test/pictures.mjs

install: ## build, and put hightide into PREFIX/bin, by default ~/.local/bin
	@$(MAKE) --no-print-directory build
	@install -D -m 0755 bin/hightide "$(DESTDIR)$(PREFIX)/bin/hightide"
	@echo "$(DESTDIR)$(PREFIX)/bin/hightide"

wheel: ## build dist/hightide-*.whl
	@scripts/setup tools node
	@$(MAKE) --no-print-directory build
	@cd packaging && SOURCE_DATE_EPOCH=$${SOURCE_DATE_EPOCH:-$$(git log -1 --format=%ct)} \
		$(TOOLS)/hatchling build -t wheel -d ../dist

release: ## build dist/release: archives, wheels, .deb, .rpm, SBOM and checksums for all targets
	@scripts/setup tools node nfpm
	@$(MAKE) --no-print-directory build cross
	@rm -rf dist/release
	@$(TOOLS)/python scripts/release.py dist/release

docs: ## build the site into build/site, to be read without a network
	@scripts/setup site
	@test -x bin/hightide || $(MAKE) --no-print-directory build
	@NO_MKDOCS_2_WARNING=1 $(CACHE)/site/bin/mkdocs --quiet build --strict

heap: ## build the C parts alone: the heap sampler, the helpers of NVML, signals and output
	@$(MAKE) --no-print-directory -C heap
	@$(MAKE) --no-print-directory -C internal/launch
	@$(MAKE) --no-print-directory -C internal/sampler/nvml

device: ## build the imaginary GPU alone
	@$(MAKE) --no-print-directory -C device

cross: ## build the C parts for Linux on arm64, with Debian's gcc-aarch64-linux-gnu
	@for folder in heap device internal/launch internal/sampler/nvml; do \
		$(MAKE) --no-print-directory -s -C $$folder CROSS=aarch64-linux-gnu- || exit 1; done

web: build/web.stamp ## build the web assets alone

build/web.stamp: $(WEB_SOURCES)
	@scripts/setup node
	@npm --prefix web run --silent build
	@mkdir -p build && touch $@

# The agent's sources are embedded as they lie there, so no bytecode may lie beside them.
binary: heap device
	@find agent/python/src -name __pycache__ -prune -exec rm -rf {} +
	@CGO_ENABLED=0 go build -trimpath -ldflags '$(LDFLAGS)' $(SMALLER) -o bin/hightide ./cmd/hightide
	@echo "bin/hightide $(VERSION)"

clean: ## remove what was built here; the environments in ~/.cache/hightide stay
	@$(MAKE) --no-print-directory -C heap clean
	@$(MAKE) --no-print-directory -C device clean
	@$(MAKE) --no-print-directory -C internal/sampler/nvml clean
	@$(MAKE) --no-print-directory -C internal/launch clean
	rm -rf bin dist build web/node_modules bench/results
	find web/dist -mindepth 1 -not -name PLACEHOLDER -delete

.PHONY: help build pictures install demo test fuzz lint bench bench-beside bench-fidelity wheel release docs heap device cross web binary clean
