#!/usr/bin/env bash
# What `make demo` runs: one screen of HEAD~1 against HEAD, with its verdict in the controller's ledger.
#
# A verdict of any kind is a success here. Where the pair cannot be ranked (HEAD~1 does not build, or HEAD changes
# what measures it), that verdict is recorded as well and HEAD is then measured against itself, so that a
# measurement is seen in any case. What stopped the controller (exit codes 1, 2, 15, 16, 19 and above) is a failure.
set -uo pipefail
cd "$(dirname "$0")/.."

screen() {
  printf '\n== scripts/autoresearch.py screen %s %s\n' "$1" "$2"
  .venv/bin/python scripts/autoresearch.py screen "$1" "$2"
  code=$?
}

base=HEAD
git rev-parse -q --verify 'HEAD~1^{commit}' >/dev/null && base=HEAD~1
screen "$base" HEAD
if [ "$base" != HEAD ] && { [ "$code" -eq 14 ] || [ "$code" -eq 18 ]; }; then
  printf '\nThat pair cannot be ranked, for the reason above. HEAD against itself shows what a measurement looks like:\n'
  screen HEAD HEAD
fi
case "$code" in
  0 | 10 | 11 | 12 | 13 | 17 | 18) exit 0 ;;
  *) exit "$code" ;;
esac
