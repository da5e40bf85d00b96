"""`import`: find ROMs of known games and put them where they are looked for; the work is `importing`'s."""

from __future__ import annotations

import argparse
from dataclasses import asdict

from rollcart.cli.answer import NO, Answer
from rollcart.cli.talk import Talk
from rollcart.words import counted

# Files without a match that are named without --verbose.
_NAMED = 20


def declare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "paths", nargs="+", metavar="PATH", help="ROMs, zips (zips inside too), folders of them"
    )
    parser.add_argument(
        "--into",
        metavar="FOLDER",
        help="the data folder that gets the ROMs; default: the first of RETRO_DATA_PATH, and without one the "
        "folder that has the game's rom.sha",
    )
    parser.add_argument("--dry-run", action="store_true", help="say what would be done, write nothing")
    parser.add_argument(
        "--verbose", action="store_true", help=f"name all files without a match, not {_NAMED}"
    )


def run(options: argparse.Namespace, talk: Talk) -> Answer:
    from rollcart import discovery, importing

    found = importing.run(options.paths, into=options.into, dry_run=options.dry_run, progress=talk.progress)
    good = [one for one in found if one.outcome in (importing.IMPORTED, importing.PRESENT)]
    bad = [one for one in found if one not in good]
    for one in good:
        here = one.outcome == importing.PRESENT
        verb = "Already there:" if here else "Would import" if options.dry_run else "Importing"
        talk.say(
            f"{verb} {one.game} from {one.file} to {one.to}" + (f" ({one.reason})" if one.reason else "")
        )
    for one in bad if options.verbose else bad[:_NAMED]:
        digest = f" payload SHA-1 {one.sha1}," if one.sha1 else ""
        talk.say(f"{one.outcome}: {one.file}:{digest} {one.reason}")
    if len(bad) > _NAMED and not options.verbose:
        talk.say(f"... and {len(bad) - _NAMED} more; --verbose names them all")
    imported = sum(one.outcome == importing.IMPORTED for one in good)
    known = importing.known_games()
    count = len({target.game for target in known.values()})
    talk.say(f"{'Would import' if options.dry_run else 'Imported'} {counted(imported, 'game')}")
    if not good:
        talk.say(_advice(len(bad), count, discovery.DATA_PATH))
    document = {
        "imported": imported,
        "dry_run": options.dry_run,
        "known_games": count,
        "files": [asdict(one) for one in found],
    }
    return Answer(document, 0 if good else NO)


def _advice(tried: int, known: int, variable: str) -> str:
    looked = (
        f"{counted(tried, 'file')} could be {'a ROM' if tried == 1 else 'ROMs'}, none"
        if tried
        else "No file there ends with .nes or begins like one; none"
    )
    more = (
        "" if known > 10 else f"; {variable} or an installed stable-retro brings the data files of more games"
    )
    return f"{looked} has the digest of one of the {known} games with data files{more}."
