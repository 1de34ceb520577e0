"""What commands say about addresses: one sentence, exit code 2, and never a secret."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from convergebench.errors import ConvergeBenchError, SettingsError, StoreError
from convergebench.frame import Frame
from convergebench.remote import clouds
from convergebench.remote.address import Address
from convergebench.remote.bucket import Bucket
from convergebench.store import RunStore
from tests.remote.conftest import Shelf
from tests.remote.handmade import begun, grown
from tests.remote.objects import KEY_ID, SECRET, refusal
from tests.remote.processes import said
from tests.support.commands import Command
from tests.support.runs import picture, write_suite

NEEDS_DIRECTORY = {
    "bundle": ["bundle", "ADDRESS"],
    "export": ["export", "ADDRESS", "OUT"],
    "import": ["import", "OUT", "--to", "ADDRESS"],
    "unbundle": ["unbundle", "OUT", "--to", "ADDRESS"],
    "rate create": ["rate", "create", "ADDRESS", "NEW", "-n", "2"],
    "leaderboard pack": ["leaderboard", "pack", "ADDRESS", "--to", "OUT", "--by", "me"],
    "trial --command": ["trial", "ADDRESS", "--command", "mine,lower-is-better=true"],
}


@pytest.mark.parametrize("name", NEEDS_DIRECTORY)
def test_a_command_that_needs_a_directory_says_so(shelf: Shelf, tmp_path: Path, name: str) -> None:
    store, chain = begun(shelf, tmp_path)
    with store.writing("run"):
        grown(store, chain, *range(1, 4))
    stand = {"ADDRESS": shelf.run, "OUT": str(tmp_path / "out"), "NEW": str(tmp_path / "new")}
    (tmp_path / "out" / "s0").mkdir(parents=True)
    for step in range(3):
        data = Frame.of_pixels(picture(step)).data
        (tmp_path / "out" / "s0" / f"step_{step}.png").write_bytes(data)
    command, *words = [stand.get(word, word) for word in NEEDS_DIRECTORY[name]]
    text = Command(command).wrong(*words)
    assert "needs a run directory on this machine, got s3://" in text, text
    assert "`convergebench copy FROM TO`" in text


def test_a_secret_in_an_address_is_not_repeated(tmp_path: Path) -> None:
    address = f"s3://{KEY_ID}:{SECRET}@bucket/run"
    for command in ("run", "status", "verify", "report", "score", "spend", "plan", "copy"):
        text = Command(command).wrong(address, *(["to"] if command == "copy" else []))
        assert "holds no credentials" in text
        assert SECRET not in text
        assert KEY_ID not in text
    code, text = said("status", address)
    assert code == 2
    assert "Traceback" not in text
    assert SECRET not in text


BLOCK = """
import sys
class Without:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == {library!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Without())
from convergebench.cli import main
sys.argv = ["convergebench", "status", {address!r}]
main()
"""


@pytest.mark.parametrize(
    ("scheme", "library"), [("s3", "s3fs"), ("s3", "fsspec"), ("gs", "gcsfs"), ("az", "adlfs")]
)
def test_a_missing_library_is_told_with_the_way_to_get_it(scheme: str, library: str) -> None:
    code = BLOCK.format(library=library, address=f"{scheme}://bucket/run")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    text = " ".join(done.stderr.split())
    assert done.returncode == 2, text
    assert "Traceback" not in text
    assert f"{scheme}://bucket/run needs {library}, which is not installed" in text
    assert f"pip install 'convergebench[{scheme}]'" in text


def test_no_such_bucket(shelf: Shelf) -> None:
    code, text = said("status", "s3://there-is-no-such-bucket/run")
    assert code == 2
    assert "s3://there-is-no-such-bucket/run cannot be used: there is no such bucket" in text


def test_no_such_run(shelf: Shelf) -> None:
    assert f"{shelf.run} is not a run directory" in Command("status").wrong(shelf.run)


def test_nobody_at_the_endpoint(shelf: Shelf) -> None:
    began = time.monotonic()
    shelf.patch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    shelf.patch.setenv("CONVERGEBENCH_PATIENCE", "1")
    text = Command("status").wrong(shelf.run)
    assert (
        f"{shelf.run} does not answer (EndpointConnectionError; AWS_ENDPOINT_URL is http://127"
        in text
    )
    assert time.monotonic() - began < 60


@pytest.mark.parametrize(
    ("endpoint", "shown"),
    [
        ("http://127.0.0.1:9?token=HUSHHUSH", "http://127.0.0.1:9"),
        ("http://127.0.0.1:9/a/HUSHHUSH#HUSHHUSH", "http://127.0.0.1:9"),
        ("https://s3.example.org", "https://s3.example.org"),
        ("http://[::1]:9000/HUSHHUSH", "http://[::1]:9000"),
        ("http://HUSHHUSH:HUSHHUSH@127.0.0.1:9", ""),
        ("http://HUSHHUSH:HUSH/HUSH@127.0.0.1:9", ""),
        ("http://127.0.0.1:9;HUSHHUSH", ""),
        ("http://127.0.0.1;token=HUSHHUSH", ""),
        ("http://[HUSHHUSH", ""),
        ("HUSHHUSH", ""),
        ("", ""),
    ],
)
def test_of_an_endpoint_the_server_alone_is_shown(
    monkeypatch: pytest.MonkeyPatch, endpoint: str, shown: str
) -> None:
    monkeypatch.delenv("AWS_ENDPOINT_URL_S3", raising=False)
    monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
    assert clouds.server() == shown
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", endpoint)
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://elsewhere")
    assert clouds.server() == (shown if endpoint else "http://elsewhere")


def test_a_token_in_an_endpoint_is_not_repeated(shelf: Shelf) -> None:
    shelf.patch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9/?token=HUSHHUSH")
    shelf.patch.setenv("CONVERGEBENCH_PATIENCE", "3")
    code, text = said("status", shelf.run)
    assert code == 2
    assert "AWS_ENDPOINT_URL is http://127.0.0.1:9)" in text
    assert "HUSHHUSH" not in text


@pytest.mark.parametrize(
    ("status", "code", "word"),
    [
        (403, "InvalidAccessKeyId", "InvalidAccessKeyId"),
        (403, "SignatureDoesNotMatch", "SignatureDoesNotMatch"),
        (403, "AccessDenied", "AccessDenied"),
        (403, "RequestTimeTooSkewed", "RequestTimeTooSkewed"),
        (400, "ExpiredToken", "ExpiredToken"),
        (400, "AuthorizationHeaderMalformed", "AuthorizationHeaderMalformed"),
        (405, "MethodNotAllowed", "MethodNotAllowed"),
    ],
)
def test_what_no_second_try_would_change_is_told_at_once(
    shelf: Shelf, status: int, code: str, word: str
) -> None:
    message = f"The key {KEY_ID} with {SECRET} is wrong"  # no server says so; if one did
    shelf.proxy.trouble = lambda _asked: refusal(status, code, message)
    bucket = Bucket(Address("s3", f"{shelf.bucket}/run"))
    for do in (lambda: bucket.get("x"), lambda: bucket.put("x", b"1"), lambda: bucket.list()):
        shelf.proxy.forget()
        with pytest.raises(StoreError, match=rf"cannot be used: .*{word}") as told:
            do()
        assert len(shelf.proxy.asked) <= 2
        assert SECRET not in str(told.value)
        assert KEY_ID not in str(told.value)


@pytest.mark.parametrize("bucket", ["Bad_Bucket!", "a", "-", "x" * 200])
def test_a_bucket_that_can_be_none_is_told_at_once(shelf: Shelf, bucket: str) -> None:
    began = time.monotonic()
    with pytest.raises(ConvergeBenchError, match=r"cannot be used|is not a run"):
        RunStore.open(f"s3://{bucket}/run")
    assert time.monotonic() - began < 60, "not the minutes that a store is waited for"


def test_an_endpoint_that_is_no_url_is_told_at_once(shelf: Shelf) -> None:
    shelf.patch.setenv("AWS_ENDPOINT_URL", "nonsense")
    with pytest.raises(SettingsError, match="AWS_ENDPOINT_URL does not begin with http"):
        RunStore.open(shelf.run)


def test_no_credentials(shelf: Shelf) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        shelf.patch.delenv(name)
    text = Command("status").wrong(shelf.run)
    assert "no credentials were found. Set them as the provider's own tools expect them" in text
    shelf.patch.setenv("AWS_ACCESS_KEY_ID", KEY_ID)  # half of them
    text = Command("status").wrong(shelf.run)
    assert "no credentials were found" in text
    assert KEY_ID not in text


@pytest.mark.parametrize("told", ["endless", "nan"])
def test_patience_that_is_no_number_is_told(shelf: Shelf, told: str) -> None:
    shelf.patch.setenv("CONVERGEBENCH_PATIENCE", told)
    with pytest.raises(SettingsError, match=f"is a number of seconds, got '{told}'"):
        RunStore.open(shelf.run)


@pytest.mark.parametrize("command", ["run", "status"])
def test_a_folder_of_working_copies_that_is_none_is_told(
    shelf: Shelf, tmp_path: Path, command: str
) -> None:
    """Of a new address, and of one that has a run."""
    words = ["--suite", str(write_suite(tmp_path / "suite")), "--editor", "ref:noise"]
    if command == "status":
        begun(shelf, tmp_path)
        words = []
    (tmp_path / "file").write_text("mine")
    shelf.patch.setenv("CONVERGEBENCH_CACHE", str(tmp_path / "file"))
    code, text = said(command, shelf.run, *words)
    assert code == 2, text
    assert "Traceback" not in text
    assert f"no working copy of {shelf.run} can be kept in" in text
    assert "(Not a directory). Name another folder with CONVERGEBENCH_CACHE." in text


def test_a_home_that_cannot_be_found_is_told(shelf: Shelf) -> None:
    for told in ("", "~nobody-of-that-name/runs"):
        shelf.patch.setenv("CONVERGEBENCH_CACHE", told)
        shelf.patch.setenv("XDG_CACHE_HOME", "")
        with shelf.patch.context() as patch:
            patch.setattr(Path, "home", nowhere)
            text = Command("status").wrong(shelf.run)
        assert "no home folder was found" in text
        assert "Name a folder with CONVERGEBENCH_CACHE." in text


def nowhere() -> Path:
    raise RuntimeError("Could not determine home directory.")


def test_credentials_are_nowhere(shelf: Shelf, tmp_path: Path) -> None:
    """In no file here, in no object, in no output; whether all goes well or not."""
    suite = write_suite(tmp_path / "suite", size=16)
    more = ("--editor", "ref:noise", "--steps", "2", "--no-controls")
    texts = []

    def tell(command: str, *words: str | Path) -> None:
        result = Command(command).invoke(shelf.run, *words)
        texts.append(f"{result.output} {result.exception}")

    tell("run", "--suite", suite, *more)
    tell("score", "--metric", "psnr", "--workers", "1")
    tell("report", "--out", tmp_path / "report")
    shelf.proxy.trouble = lambda _asked: refusal(403, "SignatureDoesNotMatch")
    tell("run")
    shelf.proxy.trouble = lambda _asked: "silent"
    shelf.patch.setenv("CONVERGEBENCH_PATIENCE", "1")
    tell("verify")
    shelf.proxy.trouble = lambda _asked: None
    assert "chains done" in texts[0]
    assert "these credentials have no right there, or are wrong (403)" in texts[3]
    assert "does not answer" in texts[4]
    files = {str(p): p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()}
    assert any("/copies/" in name for name in files)
    for where, data in {**files, **shelf.client.all(shelf.bucket)}.items():
        assert SECRET.encode() not in data, where
        assert KEY_ID.encode() not in data, where
    assert not any(secret in text for text in texts for secret in (SECRET, KEY_ID))


def test_a_command_whose_store_is_down_ends_soon(shelf: Shelf, tmp_path: Path) -> None:
    """It does not wait as often as it has something to tidy up."""
    _, chain = begun(shelf, tmp_path)
    shelf.machine("a", patience=8)
    store = RunStore.open(shelf.run)
    began = 0.0

    def work() -> None:
        nonlocal began
        with store.writing("run"):
            shelf.proxy.trouble = lambda _asked: "silent"
            began = time.monotonic()
            grown(store, chain, 1)

    with pytest.raises(StoreError, match="does not answer"):
        work()
    assert 2 < time.monotonic() - began < 22
