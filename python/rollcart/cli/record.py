"""`record`: videos, pictures and movies of a movie or of a lane; the work is `movie`'s and `pictures`'."""

from __future__ import annotations

import argparse
import warnings
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rollcart.cli import game_options
from rollcart.cli.answer import NO, USAGE, Answer, CommandError
from rollcart.cli.talk import Talk
from rollcart.words import counted

if TYPE_CHECKING:
    from rollcart.games import Game
    from rollcart.movie import Movie

# Random actions are held for so many steps: one that changes in every step gets nowhere.
_HELD_STEPS = 8


def declare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "source",
        nargs="?",
        metavar="MOVIE",
        help="a movie, or a text with lines 'FRAMES BUTTONS' such as '60 RIGHT+B'; without one a batch plays",
    )
    parser.add_argument(
        "--out",
        metavar="FILE",
        help="what to write, by its end: .mp4, .gif, .png (the last picture), .rcm (a movie with checks)",
    )
    parser.add_argument("--check", action="store_true", help="only replay, and say whether all frames agree")
    parser.add_argument(
        "--no-check", action="store_true", help="go on where a replay is not what was recorded"
    )
    parser.add_argument("--scale", type=int, default=2, help="pixels for one of the console's (default 2)")
    parser.add_argument(
        "--first", type=int, default=1, metavar="N", help="begin with frame (of a batch: step) N, default 1"
    )
    parser.add_argument("--to", type=int, metavar="N", help="end with frame (of a batch: step) N")
    game_options.declare(parser)
    batch = parser.add_argument_group("without MOVIE: a batch whose lanes play at random")
    batch.add_argument("--lanes", type=int, default=1, help="how many lanes play (default 1)")
    batch.add_argument("--lane", type=int, default=0, help="which one is recorded (default 0)")
    batch.add_argument("--steps", type=int, default=600, help="steps (default 600)")
    batch.add_argument("--seed", type=int, default=0, help="seed of lanes and actions (default 0)")
    batch.add_argument("--frame-skip", type=int, default=4, help="frames a step (default 4)")


def run(options: argparse.Namespace, talk: Talk) -> Answer:
    if not options.out and not options.check:
        raise CommandError("nothing to do: give --out FILE, or --check to replay only", USAGE)
    if options.first < 1 or (options.to is not None and options.to < options.first):
        raise CommandError(f"--first {options.first} --to {options.to}: expected 1 <= first <= to", USAGE)
    if options.source:
        return _of_movie(options, talk)
    if options.check:
        raise CommandError("--check needs a MOVIE to replay", USAGE)
    return _of_lane(options, talk)


def _of_movie(options: argparse.Namespace, talk: Talk) -> Answer:
    from rollcart import movie
    from rollcart.errors import MovieDiverged

    if movie.is_movie(options.source):
        source = movie.Movie.read(options.source)
        game = game_options.find(options, talk, source.game)
    else:
        game = game_options.find(options, talk)
        source = movie.from_inputs(options.source, game, options.state or game.default_state(1))
    checked = bool(source.checks) and not options.no_check
    document: dict[str, Any] = {"game": source.game, "start": source.start_name, "frames": source.frames}
    try:
        document |= _replayed(options, talk, source, game, checked)
    except MovieDiverged as error:
        talk.say(f"{options.source}: {error}")
        return Answer({**document, "diverged": error.frame, "reason": str(error)}, NO)
    if options.out:
        talk.say(f"wrote {options.out}")
        document["out"] = options.out
    if checked:
        talk.say(f"all of the {document['played']} frames played are what was recorded")
    elif not source.checks:
        talk.say("the source has no checks, so nothing was compared; --out FILE.rcm writes a movie with them")
    return Answer({**document, "checked": checked})


def _replayed(
    options: argparse.Namespace, talk: Talk, source: Movie, game: Game, checked: bool
) -> dict[str, Any]:
    """Plays the movie into what --out names; what is told of it."""
    from rollcart import movie, pictures

    last = min(options.to or source.frames, source.frames)
    if options.first > last:
        raise CommandError(
            f"--first {options.first}: the movie has {source.frames} frames, expected at most {last}"
        )
    if _is_movie(options.out):
        if options.first > 1:
            raise CommandError(
                "--first: a movie begins where it begins; leave it away or write a video", USAGE
            )
        if checked:
            for frame, _ in enumerate(movie.replay(source, game.rom), 1):
                talk.progress(f"checking frame {frame} of {source.frames}")
        progress = lambda frame: talk.progress(f"frame {frame} of {last}")  # noqa: E731
        movie.with_checks(source, game.rom, frames=last, progress=progress).write(options.out)
        return {"played": last, "pictures": 0}
    with pictures.Video(options.out, scale=options.scale) if options.out else nullcontext() as video:
        for frame, console in enumerate(movie.replay(source, game.rom, check=checked), 1):
            if video and frame >= options.first:
                video.add(pictures.window(console))
            talk.progress(f"frame {frame} of {last}")
            if frame == last:
                break
    return {"played": last, "pictures": video.pictures if video else 0}


def _is_movie(out: str | None) -> bool:
    from rollcart import movie

    return out is not None and Path(out).suffix == movie.SUFFIX


def _of_lane(options: argparse.Namespace, talk: Talk) -> Answer:
    import numpy as np

    from rollcart import pictures

    if not 0 <= options.lane < options.lanes:
        raise CommandError(
            f"--lane {options.lane}: expected 0 to {options.lanes - 1} (--lanes {options.lanes})"
        )
    steps = min(options.to or options.steps, options.steps)
    env = _batch(options, talk)
    rng = np.random.default_rng(options.seed)
    only_movie, rate = _is_movie(options.out), pictures.NTSC_FPS / options.frame_skip
    total, episodes, actions = 0.0, 0, np.zeros(options.lanes, int)
    with nullcontext() if only_movie else pictures.Video(options.out, rate, options.scale) as video:
        env.log_inputs(np.arange(options.lanes) == options.lane)
        env.reset(seed=options.seed)
        for step in range(1, steps + 1):
            if step % _HELD_STEPS == 1:
                actions = rng.integers(env.single_action_space.n, size=options.lanes)
            _, reward, terminated, truncated, _ = env.step(actions)
            total += float(reward[options.lane])
            episodes += int(terminated[options.lane] | truncated[options.lane])
            if video and step >= options.first:
                video.add(env.render_lane(options.lane))
            talk.progress(f"step {step} of {steps}")
    if only_movie:
        env.movie(options.lane).write(options.out)
    env.close()
    held = "; the movie holds the last episode" if only_movie and episodes else ""
    talk.say(
        f"wrote {options.out}: lane {options.lane}, {counted(steps, 'step')}, reward {total:g}, "
        f"{counted(episodes, 'episode')} ended{held}"
    )
    return Answer(
        {
            "game": env.game,
            "out": options.out,
            "lane": options.lane,
            "steps": steps,
            "pictures": video.pictures if video else 0,
            "reward": total,
            "episodes": episodes,
        }
    )


def _batch(options: argparse.Namespace, talk: Talk) -> Any:
    from rollcart import NesVectorEnv, games

    game_options.find(options, talk)  # says what is to be said about the game
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return NesVectorEnv(
            options.game or games.BUNDLED,
            options.lanes,
            rom_path=options.rom_path,
            state=options.state,
            obs="ram",
            frame_skip=options.frame_skip,
        )
