"""Builds, stamps and variants, rule by rule: builds by a line of shell, without a compiler."""

from __future__ import annotations

import fcntl
import json
from dataclasses import replace
from pathlib import Path

import fake_project
import pytest
from shell_builds import BUILD, Recipe, Settings

from cartlab import sources
from cartlab.errors import BadInput, BuildFailed, Tampered
from cartlab.model import Build, Ref
from cartlab.sources import builds, layouts, stamps


@pytest.fixture
def project(tmp_path: Path) -> fake_project.Project:
    project = fake_project.Project(tmp_path / "repo")
    project.path.mkdir()
    project.git("init", "-q", "-b", "main")
    project.write("native", "of the first\n")
    project.write("part.py", "VALUE = 1\n")
    project.commit("first")
    return project


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "root"


def settings(project: fake_project.Project, command: str = BUILD, artifact: str = "native") -> Settings:
    return Settings(project.path / "autoresearch.toml", Recipe(command, artifact))


def built(project: fake_project.Project, root: Path, command: str = BUILD, artifact: str = "native") -> Build:
    root.mkdir(exist_ok=True)
    ref = sources.resolve(project.path, "HEAD")
    return sources.build(settings(project, command, artifact), ref, root)


# --- builds


def test_a_configuration_that_is_text_alone_builds_nothing(project: fake_project.Project, root: Path) -> None:
    ref = sources.resolve(project.path, "HEAD")
    with pytest.raises(BadInput, match="the repository that its configuration was read from"):
        sources.build(Settings(None), ref, root)


@pytest.mark.parametrize(
    ("command", "artifact", "why"),
    [
        (f"{BUILD}; exit 3", "native", "ended with exit code 3"),
        ("mkdir $CARTLAB_BUILD_DIR/native", "native", "must leave one file native; it left 0"),
        ("cd $CARTLAB_BUILD_DIR; echo x > x; ln -s x native", "native", "it left 0"),
        ("cd $CARTLAB_BUILD_DIR; echo x > one.so; echo x > two.so", "*.so", r"one file \*\.so; it left 2"),
        ("true", "native", "it left 0"),
    ],
)
def test_a_build_must_end_well_and_leave_one_plain_file(
    project: fake_project.Project, root: Path, command: str, artifact: str, why: str
) -> None:
    with pytest.raises(BuildFailed, match=why) as refused:
        built(project, root, f"echo told; {command}", artifact)
    assert refused.value.details["log_tail"] == "told\n" + ("built\n" if BUILD in command else "")
    assert not list(root.rglob("stamp.json"))
    assert not (root / "tmp" / "build" / "src").exists(), "the place is clean again"


def test_an_artifact_is_found_by_its_pattern_beside_folders_and_links(
    project: fake_project.Project, root: Path
) -> None:
    made = built(project, root, f"cd $CARTLAB_BUILD_DIR; mkdir a; ln -s n b; cp {project.path}/native n", "*")
    assert made.artifact == "n"


def test_the_log_begins_with_what_the_archive_had_altered(project: fake_project.Project, root: Path) -> None:
    assert sources.log_of(built(project, root)).read_text() == "built\n"
    project.write(".gitattributes", "hidden export-ignore\n")
    project.write("hidden", "there\n")
    project.commit("hidden")
    log = sources.log_of(built(project, root)).read_text()
    assert log == "exported from its blob, not as archived: hidden\nbuilt\n"


@pytest.mark.parametrize("kept", [False, True])
def test_sources_are_kept_where_that_is_asked(project: fake_project.Project, root: Path, kept: bool) -> None:
    root.mkdir()
    ref, told = sources.resolve(project.path, "HEAD"), []
    made = sources.build(settings(project), ref, root, keep_sources=kept, progress=told.append)
    folder = Path(made.path).parent
    assert (folder / "src").is_dir() == kept
    assert not kept or (folder / "src" / "part.py").read_text() == "VALUE = 1\n"
    assert told == [f"building HEAD ({ref.commit[:12]})"]
    assert {path.name for path in (root / "tmp" / "build").iterdir()} == {"lock", "target"}


def test_what_another_build_made_meanwhile_is_taken(project: fake_project.Project, tmp_path: Path) -> None:
    """Who waits for the place of builds looks again once it is free, and then holds it."""
    here, there = tmp_path / "here", tmp_path / "there"
    made = built(project, there)
    place = here / "tmp" / "build"
    place.mkdir(parents=True)
    told = []

    def progress(line: str) -> None:
        told.append(line)
        if line.startswith("waiting"):
            if len(told) == 1:
                (there / "builds").rename(here / "builds")
            fcntl.flock(holder, fcntl.LOCK_UN)
        else:
            with pytest.raises(BlockingIOError):
                fcntl.flock(holder, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def build(text: str) -> Build:
        ref = sources.resolve(project.path, text)
        return sources.build(settings(project), ref, here, progress=progress)

    with (place / "lock").open("w") as holder:
        fcntl.flock(holder, fcntl.LOCK_EX)
        again = build("HEAD")
        assert again.cached and again.build_id == made.build_id
        assert told == ["waiting for another build under this root"]
        project.write("native", "of the second\n")
        second = project.commit("second")
        fcntl.flock(holder, fcntl.LOCK_EX)
        assert not build("HEAD").cached
        assert told[2:] == [f"building HEAD ({second[:12]})"]
        fcntl.flock(holder, fcntl.LOCK_EX | fcntl.LOCK_NB)  # free once the build is over


def test_each_thing_that_goes_into_a_build_is_part_of_its_key(
    project: fake_project.Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain, ref = settings(project), Ref("x", "1" * 40, "2" * 40)

    def key(config: Settings = plain, ref: Ref = ref, fresh: bool = False) -> str:
        return builds.key_of(config, ref, fresh=fresh, folder=project.path)

    keys = {
        key(),
        key(ref=replace(ref, tree="3" * 40)),
        key(fresh=True),
        key(replace(plain, build=Recipe("other"))),
        key(replace(plain, build=Recipe(artifact="other"))),
        key(replace(plain, build=Recipe(env={"A": "1"}))),
    }
    assert len(keys) == 6
    assert key(ref=replace(ref, name="y", commit="4" * 40)) == key(), "the same tree is the same build"
    monkeypatch.setenv("RUSTFLAGS", "-Copt-level=1")
    assert key() not in keys


# --- stamps


def test_a_finished_build_has_its_byte_code_checked_by_nothing(
    project: fake_project.Project, root: Path
) -> None:
    made = built(project, root, f"{BUILD}; cp part.py $CARTLAB_BUILD_DIR")
    [code] = Path(made.path).rglob("*.pyc")
    assert code.read_bytes()[4:8] == b"\1\0\0\0", "by hash, which nobody compares"
    assert code.relative_to(made.path).as_posix() in stamps.manifest(Path(made.path))


def test_a_manifest_has_files_by_content_and_links_by_target(tmp_path: Path) -> None:
    (tmp_path / "folder" / "inner").mkdir(parents=True)
    (tmp_path / "folder" / "file").write_text("")
    (tmp_path / "to-a-file").symlink_to("folder/file")
    (tmp_path / "to-a-folder").symlink_to("folder")
    (tmp_path / "to-nothing").symlink_to("nowhere")
    assert stamps.manifest(tmp_path) == {
        "folder/file": "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "to-a-file": "link:folder/file",
        "to-a-folder": "link:folder",
        "to-nothing": "link:nowhere",
    }


@pytest.mark.parametrize("stamp", [None, "", "{", "[]", "7", "{}", '{"files": {}}'])
def test_a_build_whose_stamp_does_not_say_its_files_is_none(
    project: fake_project.Project, root: Path, stamp: str | None
) -> None:
    made = built(project, root)
    folder = Path(made.path).parent
    assert stamps.load(made.ref, made.build_id, folder) == replace(made, cached=True)
    sources.check(made)
    if stamp is None:
        (folder / stamps.STAMP).unlink()
    else:
        (folder / stamps.STAMP).write_text(stamp)
    assert stamps.load(made.ref, made.build_id, folder) is None
    with pytest.raises(Tampered, match="files of it changed on disk"):
        sources.check(made)
    assert not built(project, root).cached
    assert {path.name for path in folder.iterdir()} == {"out", "link", "build.log", stamps.STAMP}


# --- variants


def test_a_refusal_is_believed_of_its_own_command_alone(project: fake_project.Project, root: Path) -> None:
    made = built(project, root)
    home = Path(made.path).parent
    refusing = replace(settings(project), layout_command="echo said; exit 3")
    with pytest.raises(sources.CannotRelink, match="exit code 3"):
        sources.variant(refusing, made, 1)
    assert (home / "layout.log").read_text() == "said\n"
    assert list((home / "layouts").iterdir()) == []
    relinking = replace(refusing, layout_command="echo $CARTLAB_LAYOUT_SEED >> $CARTLAB_ARTIFACT")
    variant = sources.variant(relinking, made, 2)
    assert Path(variant.path, "native").read_text() == "of the first\n2\n"
    (home / layouts.REFUSED).write_text(json.dumps({"command": relinking.layout_command}))
    assert sources.variant(relinking, made, 3).artifact_sha256 != variant.artifact_sha256


def test_a_variant_starts_from_the_build_and_leaves_no_target(
    project: fake_project.Project, root: Path
) -> None:
    made = built(project, root)
    command = (
        "test ! -e $CARTLAB_BUILD_DIR/left && touch $CARTLAB_BUILD_DIR/left; mkdir -p $CARGO_TARGET_DIR; "
    )
    relinking = replace(settings(project), layout_command=command + "date +%N >> $CARTLAB_ARTIFACT")
    first = sources.variant(relinking, made, 1)
    folder = Path(first.path).parent
    assert {path.name for path in folder.iterdir()} == {"out", "layout.log", stamps.STAMP}
    (folder / stamps.STAMP).unlink()
    again = sources.variant(relinking, made, 1)
    assert not again.cached
    assert Path(again.path, "native").read_text().count("\n") == 2
    with pytest.raises(sources.CannotRelink, match=r"no \[layout\] command"):
        sources.variant(settings(project), made, 1)
