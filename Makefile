# prorata: give programs the share of a machine that they were promised.
#
#   make run      build it and see three programs share one CPU 3:2:1
#   make run-slots see a timetable of the CPUs beside plain Linux, nice and
#                 SCHED_DEADLINE, in a minute
#   make test     the tests that CI runs: half an hour on two CPUs
#   make test-all all tests, before each release: both kernels, every number of
#                 CPUs, all figures, and what test-seeds has
#   make test-seeds whether verdicts on the papers' figures depend on the seed, in
#                 a quarter of an hour
#   make test-seeds-2001 the same of the paper of 2001, in hours: for a night
#   make vm-test  all tests of the scheduler inside Linux, in virtual machines
#   make vm-demo  see a scheduler inside Linux, in a virtual machine
#   make bench    all benches, beside their peers and the papers' figures
#   make figures  the papers' figures on one page, reproduced by simulation and,
#                 for a quarter of an hour, on real processes (ENGINES=sim:
#                 without); fails if a number fails, not if it differs
#   make install  program, man pages and completions below PREFIX (/usr/local);
#                 FEATURES=kernel builds the kernel engine in, and PRORATA=FILE
#                 installs a program that is built already

ENGINES ?= sim,user
FEATURES ?=
PREFIX ?= /usr/local
DESTDIR ?=
CARGO_TARGET_DIR ?= target
export CARGO_TARGET_DIR

PRORATA ?= $(CARGO_TARGET_DIR)/release/prorata
SHARE = $(CARGO_TARGET_DIR)/share
PLACES = bin share/man/man1 share/bash-completion/completions \
	share/fish/vendor_completions.d share/zsh/site-functions

.PHONY: run run-slots test test-all test-seeds test-seeds-2001 vm-test vm-demo bench figures build install uninstall clean need-cargo

run: build
	$(PRORATA) demo

run-slots: build
	$(PRORATA) demo --slots

build: $(PRORATA)

$(CARGO_TARGET_DIR)/release/prorata: need-cargo
	cargo build --release --locked --package prorata --features "$(FEATURES)"

test: need-cargo
	scripts/test

test-all: need-cargo
	scripts/test all

test-seeds: need-cargo
	scripts/test seeds

test-seeds-2001: need-cargo
	scripts/test seeds-2001

vm-test: need-cargo
	scripts/test machines

vm-demo: need-cargo
	scripts/vm-demo

bench: need-cargo
	scripts/bench

figures: build
	$(PRORATA) reproduce --engine $(ENGINES) --html "$(CARGO_TARGET_DIR)/figures.html"; \
		code=$$?; echo "$(CARGO_TARGET_DIR)/figures.html"; [ $$code -eq 3 ] || exit $$code

install: build
	for place in $(PLACES); do install -d "$(DESTDIR)$(PREFIX)/$$place" || exit; done
	rm -rf "$(SHARE)" && mkdir -p "$(SHARE)"
	$(PRORATA) man "$(SHARE)/man1"
	for shell in bash fish zsh; do \
		$(PRORATA) completions $$shell > "$(SHARE)/$$shell" || exit; done
	install "$(PRORATA)" "$(DESTDIR)$(PREFIX)/bin/prorata"
	install -m 644 "$(SHARE)"/man1/* "$(DESTDIR)$(PREFIX)/share/man/man1"
	install -m 644 "$(SHARE)/bash" "$(DESTDIR)$(PREFIX)/share/bash-completion/completions/prorata"
	install -m 644 "$(SHARE)/fish" "$(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/prorata.fish"
	install -m 644 "$(SHARE)/zsh" "$(DESTDIR)$(PREFIX)/share/zsh/site-functions/_prorata"

uninstall:
	rm -f "$(DESTDIR)$(PREFIX)/bin/prorata" \
		"$(DESTDIR)$(PREFIX)"/share/man/man1/prorata.1 \
		"$(DESTDIR)$(PREFIX)"/share/man/man1/prorata-*.1 \
		"$(DESTDIR)$(PREFIX)/share/bash-completion/completions/prorata" \
		"$(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/prorata.fish" \
		"$(DESTDIR)$(PREFIX)/share/zsh/site-functions/_prorata"

clean: need-cargo
	cargo clean

need-cargo:
	@scripts/need-cargo
