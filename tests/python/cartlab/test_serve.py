"""The live page: who may ask, what it shows, and that it changes nothing."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import campaign_events
import pytest
import small_experiment
import small_journal
from browser import find
from small_experiment import Experiment, git
from test_report import Reader

from cartlab.errors import UsageError
from cartlab.ledger import Ledger
from cartlab.loops import goals, manifest
from cartlab.loops.live import facts, page
from cartlab.loops.live.server import Pages, Server, loopback

EVIL = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>"
BODY = f"""
(work / "notes.txt").write_text({EVIL!r})
config(rate=[0.5, 0.2, 0.9][round - 1]); say("rate " + str(round) + {EVIL!r})
if round == 2: (work / "eval.py").write_text("print('rate: 9')")
"""


@pytest.fixture(scope="module")
def experiment(tmp_path_factory: pytest.TempPathFactory) -> Experiment:
    """Three rounds of the bare experiment: a gain, a cheat, a gain, all with text that wants to be markup."""
    one = small_experiment.make_bare(tmp_path_factory.mktemp("live"), rounds=3)
    (one.folder / "eval.py").write_text(
        "import json, sys\nprint('rate:', json.load(open('config.json'))['rate'])\n"
        f"print({EVIL!r}, file=sys.stderr)\n"
    )
    git(one.repo, "commit", "-q", "-am", "louder")
    here = Path.cwd()
    os.chdir(one.repo)
    try:
        assert one.supervise(BODY) == 0
    finally:
        os.chdir(here)
    return one


@pytest.fixture(scope="module")
def server(experiment: Experiment) -> Iterator[Server]:
    made = Server("127.0.0.1", 0, Pages(experiment.root, lambda: "<!doctype html><p>the report</p>", 2))
    thread = threading.Thread(target=lambda: made.serve_forever(poll_interval=0.01), daemon=True)
    thread.start()
    yield made
    made.shutdown()
    thread.join()
    made.server_close()


def ask(
    server: Server, path: str, method: str = "GET", host: str | None = None
) -> tuple[int, dict[str, str], str]:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_address[1], timeout=20)
    headers = {} if host is None else {"Host": host}
    connection.putrequest(method, path, skip_host=host is not None)
    for name, value in headers.items():
        connection.putheader(name, value)
    connection.endheaders()
    answer = connection.getresponse()
    body = answer.read().decode()
    connection.close()
    return answer.status, {name.lower(): value for name, value in answer.getheaders()}, body


def names(one: Experiment) -> list[str]:
    goal = list(goals.fold(Ledger.open(one.root, mend=False).events()).values())[-1]
    return [goal.id, *(found.id for found in goal.tries)]


def test_the_pages_show_trend_table_difference_and_logs(experiment: Experiment, server: Server) -> None:
    goal, first, second, third = names(experiment)
    status, headers, body = ask(server, "/")
    assert status == 200 and headers["refresh"] == "2" and headers["cache-control"] == "no-store"
    reader = Reader(body)
    for word in (goal, first, second, third, "keep", "compliance_failed", "0.9", "Trend", "completed"):
        assert word in reader.text, word
    assert len(re.findall(r"<circle", body)) == 2  # the cheat has no value
    assert ask(server, f"/goal/{goal}")[2].count("<tr>") == body.count("<tr>") == 4
    status, _, body = ask(server, f"/attempt/{first}")
    reader = Reader(body)
    assert status == 200 and '+{"rate": 0.5, "steps": 10}' in reader.text
    assert "eval.err" in reader.text and EVIL in reader.text
    status, headers, body = ask(server, "/data.json")
    told = json.loads(body)["goals"][0]
    assert headers["content-type"] == "application/json" and told["best"] == 0.9
    assert [one["status"] for one in told["entries"]] == ["keep", "compliance_failed", "keep"]
    assert "measurement" in Reader(ask(server, "/ledger")[2]).text
    assert "the report" in ask(server, "/report")[2]


def test_nothing_that_a_candidate_wrote_becomes_markup(experiment: Experiment, server: Server) -> None:
    for path in ("/", "/ledger", *(f"/attempt/{name}" for name in names(experiment)[1:])):
        status, headers, body = ask(server, path)
        assert status == 200 and "alert(1)" in body
        tags = {tag for tag, _ in Reader(body).elements}
        assert not tags & {"script", "img", "iframe", "link", "object"}, path
        assert headers["content-security-policy"].startswith("default-src 'none'; style-src 'unsafe-inline';")
        assert headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(
    "path",
    [
        "/../../etc/passwd",
        "/attempt/..%2f..%2f..%2fevents.jsonl",
        "/attempt/../../../../etc/passwd",
        "/goal/%2e%2e",
        "//127.0.0.1/etc/passwd",
        "/events.jsonl",
        "/attempt/",
        "/attempt/%00",
        "/nothing",
        "//[",
    ],
)
def test_no_path_leads_to_a_file(server: Server, path: str) -> None:
    status, headers, body = ask(server, path)
    assert status == 404 and "root:" not in body and '"hash"' not in body and "refresh" not in headers


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT"])
def test_every_other_method_is_refused(server: Server, method: str) -> None:
    status, headers, body = ask(server, "/", method)
    assert (status, headers["allow"], body) == (405, "GET, HEAD", "")


def test_head_has_the_head_alone(server: Server) -> None:
    status, headers, body = ask(server, "/ledger", "HEAD")
    assert status == 200 and body == "" and int(headers["content-length"]) > 1000


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:80", "10.0.0.1", "", "127.0.0.1.evil.example"]
)
def test_a_name_that_is_not_this_machine_s_gets_nothing(server: Server, host: str) -> None:
    """A page of the internet whose name was turned to this machine sends its own name as Host."""
    status, _, body = ask(server, "/", host=host)
    assert status == 403 and "keep" not in body


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1:1", "[::1]:80", "127.8.8.8"])
def test_the_names_of_this_machine_are_served(server: Server, host: str) -> None:
    assert ask(server, "/", host=host)[0] == 200


def test_only_loopback_addresses_are_listened_on() -> None:
    assert (loopback("localhost"), loopback("::1"), loopback("127.1.2.3")) == (
        "127.0.0.1",
        "::1",
        "127.1.2.3",
    )
    for host in ("0.0.0.0", "::", "192.168.1.4", "example.org", "", "127.1"):
        with pytest.raises(UsageError, match="this machine alone"):
            loopback(host)


def test_serving_writes_nothing_and_a_growing_ledger_is_seen(
    experiment: Experiment, server: Server, tmp_path: Path
) -> None:
    before = manifest.digest(manifest.scan(experiment.root))
    for path in ("/", "/ledger", "/data.json", f"/attempt/{names(experiment)[1]}"):
        assert ask(server, path)[0] == 200
    assert manifest.digest(manifest.scan(experiment.root)) == before
    count = json.loads(ask(server, "/data.json")[2])["events"]
    Ledger.open(experiment.root).note("scratchpad.md", "seen")
    assert json.loads(ask(server, "/data.json")[2])["events"] == count + 1


def test_a_ledger_that_was_replaced_is_read_anew(experiment: Experiment, tmp_path: Path) -> None:
    pages, path = Pages(tmp_path, lambda: "", 0), tmp_path / "events.jsonl"
    lines = (experiment.root / "events.jsonl").read_bytes().splitlines(keepends=True)
    for count in (3, 5, 2):
        path.write_bytes(b"".join(lines[:count]))
        assert [event["seq"] for event in pages.events()] == list(range(1, count + 1))


def test_a_damaged_ledger_and_an_empty_root_are_said(tmp_path: Path) -> None:
    pages = Pages(tmp_path, lambda: "", 0)
    assert "No loop was opened" in pages.answer("/")[2]
    (tmp_path / "events.jsonl").write_text("not an event\n{}\n")
    status, _, body = pages.answer("/")
    assert status == 500 and "Not readable" in body and "line 1" in body


def test_journals_and_campaigns_have_their_trends_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = small_journal.make(tmp_path)
    monkeypatch.chdir(journal.repo)
    assert journal.init() == 0
    journal.x("8")
    assert journal.log("less work") == 0
    found = facts.standings(journal.events)[0]
    assert (found.loop, found.metric, found.direction) == ("journal", "cost", "lower")
    assert (found.baseline, found.best) == (10.0, 8.0)
    assert [one.kept for one in found.entries] == [False, True] and found.entries[1].tried == "less work"
    told = campaign_events.Events().opened().generation(1, "opened")
    told.proposed("1").ran("1", 1, "keep", 0.5, champion=True).proposed("2").ran("2", 1, "crashed", None)
    found = facts.standings(told)[0]
    assert (found.loop, found.metric, found.best) == ("campaign", "error", 0.5)
    assert found.entries[0].tried == campaign_events.hypothesis()["change"]
    for goal in (*facts.standings(journal.events), found):
        body = page.goal_page(goal)
        assert "<circle" in body and goal.id in body and "nan" not in body


def test_a_link_in_an_attempt_s_folder_is_not_followed(experiment: Experiment) -> None:
    name = names(experiment)[2]
    folder = experiment.root / "benchmarks" / "runs" / name
    (folder / "trap.log").symlink_to("/etc/passwd")
    try:
        found = facts.detail(Ledger.open(experiment.root, mend=False).events(), experiment.root, name)
    finally:
        (folder / "trap.log").unlink()
    assert found is not None and "trap.log" not in [log for log, _ in found.logs]


def test_the_browser_shows_the_page_and_has_nothing_to_complain(
    experiment: Experiment, server: Server, tmp_path: Path
) -> None:
    browser = find(tmp_path / "profile")
    address = f"http://127.0.0.1:{server.server_address[1]}"
    for path in ("/", f"/attempt/{names(experiment)[1]}"):
        dom, complaints = browser.dom(address + path)
        assert complaints == [] and names(experiment)[1] in Reader(dom).text
        assert not {tag for tag, _ in Reader(dom).elements} & {"script", "img", "iframe"}


def test_the_command_prints_its_address_at_once_and_ends_by_ctrl_c(experiment: Experiment) -> None:
    words = ["serve", "--port", "0", "--json", "--autoresearch-root", str(experiment.root)]
    code = f"import sys; from cartlab.cli import main; sys.exit(main({words!r}))"
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3] / "python")}
    process = subprocess.Popen(
        [sys.executable, "-c", code], cwd=experiment.repo, env=env, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    try:
        told = json.loads(process.stdout.readline())
        address = told["details"]["address"]
        assert re.fullmatch(r"http://127\.0\.0\.1:[1-9]\d*/", address)
        connection = http.client.HTTPConnection("127.0.0.1", int(address.split(":")[2][:-1]), timeout=20)
        connection.request("GET", "/report")
        answer = connection.getresponse()
        assert answer.status == 200 and "html" in answer.read().decode()[:40]
        process.send_signal(signal.SIGINT)
        rest, _ = process.communicate(timeout=60)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 0 and rest == ""


def test_bad_flags_are_refused(experiment: Experiment, server: Server) -> None:
    for more in (["--host", "0.0.0.0"], ["--port", "70000"], ["--every", "-1"]):
        assert experiment.cartlab("serve", *more) == 2
    assert experiment.cartlab("serve", "--port", "0", "--dry-run") == 0
    assert experiment.cartlab("serve", "--port", str(server.server_address[1])) == 2
