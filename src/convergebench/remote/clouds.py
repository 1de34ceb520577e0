"""What the libraries of the clouds must be told, and what they say: s3fs, gcsfs, adlfs.

Each tries again by itself what failed, without a word and some for minutes; here that is off, for
`Bucket` tries again and tells. What they write to logs is for programmers: a command prints its own
sentence, and a program that wants their logs sets up logging and has them.
"""

from __future__ import annotations

import base64
import contextlib
import logging
import os
import re
import warnings
from functools import cache
from importlib import import_module
from typing import Any, Final
from urllib.parse import urlsplit

from convergebench.errors import SettingsError

SETTINGS: Final = ("AWS_", "GOOGLE_", "CLOUDSDK_", "GCSFS_", "AZURE_", "STORAGE_")
"""How the names of variables begin that the libraries look at."""

CREDENTIALS: Final = {
    "s3": "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, a profile, or the machine's role",
    "gs": "GOOGLE_APPLICATION_CREDENTIALS with the path of a readable key file, `gcloud auth "
    "application-default login`, or the machine's service account",
    "az": "AZURE_STORAGE_CONNECTION_STRING, or AZURE_STORAGE_ACCOUNT_NAME with "
    "AZURE_STORAGE_ACCOUNT_KEY, AZURE_STORAGE_SAS_TOKEN, `az login` or the machine's identity",
}
"""Where each provider's own tools look for them."""

NO_BUCKET: Final = ("NoSuchBucket", "ContainerNotFound", "ContainerBeingDeleted")

_NEVER: Final = {
    "AccessDenied", "AccountProblem", "AllAccessDisabled", "AuthorizationHeaderMalformed",
    "ExpiredToken", "InvalidAccessKeyId", "InvalidBucketName", "InvalidToken", "KeyTooLongError",
    "MethodNotAllowed", "PermanentRedirect", "SignatureDoesNotMatch", "301", "400", "401", "403",
    "405", *NO_BUCKET,
}  # fmt: skip
_NO_CREDENTIALS: Final = re.compile(
    r"NoCredentials|PartialCredentials|ProfileNotFound|TokenRetrieval|DefaultCredentials"
    r"|ClientAuthentication|CredentialUnavailable"
)
_TALKATIVE: Final = ("adlfs", "asyncio", "azure", "fsspec", "gcsfs", "google", "urllib3")
_SECONDS: Final = 60.0
"""Without a byte from the store, after which a request has failed; as botocore has it."""


class NoCredentials(Exception):
    """There is nothing that a library could use as credentials."""


@cache
def files_of(scheme: str, _process: int, _settings: tuple[tuple[str, str], ...]) -> Any:
    """The file system of a scheme: one for all runs, because it takes a quarter of a second.

    Raises:
        ImportError: Its library is not installed.
        NoCredentials: There are none.
        SettingsError: There are some of a wrong form.
    """
    for name in _TALKATIVE:  # or Python prints what is logged when nobody listens
        logging.getLogger(name).addHandler(logging.NullHandler())
    usual = {"use_listings_cache": False, "skip_instance_cache": True}
    return {"s3": _amazon, "gs": _google, "az": _azure}[scheme](usual)


def _amazon(usual: dict[str, Any]) -> Any:
    import fsspec

    names = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
    name = next((name for name in names if os.environ.get(name)), "")
    ignored = os.environ.get("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "").lower() == "true"
    if name and not ignored and not re.match("https?://", os.environ[name], re.IGNORECASE):
        raise SettingsError(f"{name} does not begin with http:// or https://: write it so.")

    files = fsspec.filesystem(
        "s3",
        config_kwargs={"retries": {"max_attempts": 1, "mode": "standard"}},
        max_concurrency=1,  # one request a picture: looking for its size first would be two
        **usual,
    )
    files.retries = 1  # of s3fs: five, with waits of its own
    return files


def _google(usual: dict[str, Any]) -> Any:
    """The plain file system of gcsfs, for all buckets but zonal ones.

    The one that it offers first asks over gRPC before each request what kind of bucket it is, in
    vain and with a warning where the credentials do not suffice for that, or there are none.
    """
    core: Any = import_module("gcsfs.core")
    aiohttp: Any = import_module("aiohttp")  # gcsfs needs it as well
    timeout = aiohttp.ClientTimeout(total=None, sock_connect=_SECONDS, sock_read=_SECONDS)
    auth: Any = import_module("google.auth.exceptions")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of credentials without a project, which nobody needs here
        try:
            files = core.GCSFileSystem(token="google_default", requests_timeout=timeout, **usual)
        except auth.GoogleAuthError as error:
            if os.environ.get("GOOGLE_APPLICATION_CREDENTIALS"):
                raise SettingsError(
                    "GOOGLE_APPLICATION_CREDENTIALS names a file that is not there or has no "
                    "credentials of Google's in it"
                ) from error
            # A bucket may be open to everybody.
            files = core.GCSFileSystem(token="anon", requests_timeout=timeout, **usual)
    # Six tries, with up to 32 s between them and a traceback in the log after the last; there is no
    # option of gcsfs for it. A release that keeps them elsewhere is slow to give up, no more.
    with contextlib.suppress(AttributeError):
        files._request = core.GCSFileSystem._request.__wrapped__.__get__(files)
    return files


def _azure(usual: dict[str, Any]) -> Any:
    import fsspec

    adlfs: Any = import_module("adlfs")
    told = os.environ.get("AZURE_STORAGE_CONNECTION_STRING")
    if not told and not os.environ.get("AZURE_STORAGE_ACCOUNT_NAME"):
        raise NoCredentials
    try:
        files: Any = fsspec.filesystem("az", **usual)
    except ValueError as error:
        name = "CONNECTION_STRING" if told else "ACCOUNT_NAME"
        raise SettingsError(
            f"AZURE_STORAGE_{name} is set to something that {adlfs.__name__} cannot use. Copy it "
            "again from the access keys of the storage account."
        ) from error
    # Three more tries, 15 s and more between them; nor is there one of adlfs.
    with contextlib.suppress(AttributeError):
        files.service_client._config.retry_policy.total_retries = 0
    return files


def server() -> str:
    """The S3 server that the environment names, `scheme://host:port` and no more.

    Empty where none is named, or where it cannot be told apart from a secret.
    """
    told = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL", "")
    try:
        url = urlsplit(told)
        port = f":{url.port}" if url.port is not None else ""
    except ValueError:
        return ""
    host = url.netloc.removesuffix(port)
    plain = re.fullmatch(r"[\w.-]+|\[[\da-f:.]+\]", host, re.ASCII | re.IGNORECASE)
    return f"{url.scheme}://{host}{port}" if plain and "@" not in told else ""


# -- what they say ------------------------------------------------------------------------------


def causes(error: BaseException) -> list[BaseException]:
    """An error and what it came from."""
    found: list[BaseException] = []
    each: BaseException | None = error
    while each is not None and each not in found:
        found.append(each)
        each = each.__cause__ or each.__context__
    return found


def code_of(error: BaseException) -> str:
    """The provider's own word for what went wrong, or the status of its answer; else empty."""
    return next((code for each in causes(error) if (code := _code(each))), "")


def _code(error: BaseException) -> str:
    response = getattr(error, "response", None)
    if isinstance(response, dict):  # of botocore
        return str(response.get("Error", {}).get("Code", ""))
    if type(error) is OSError and str(error).startswith("Forbidden: "):  # of gcsfs
        return "403"
    if isinstance(error, OSError):
        return ""
    word = getattr(error, "error_code", None)  # of Azure, as is the status
    code = getattr(word, "value", word) or getattr(error, "status_code", None)
    return str(code or getattr(error, "code", None) or "")


def is_missing(error: Exception) -> bool:
    """Whether it says that there is no such bucket; adlfs says so of what it writes only."""
    said = code_of(error) in NO_BUCKET or "bucket does not exist" in str(error).lower()
    return said or type(error).__name__ == "ResourceNotFoundError"


def is_final(error: Exception) -> bool:
    """Whether no second try would change it."""
    if any(getattr(each, "retryable", False) is True for each in causes(error)):
        return False  # Google's server of tokens is down
    return is_forbidden(error) or code_of(error) in _NEVER or _has_status(error, 400, 405)


def is_forbidden(error: Exception) -> bool:
    """Whether credentials are wrong, or not good enough."""
    unreadable = type(error).__name__ == "AzureSigningError"  # no base64
    return unreadable or isinstance(error, PermissionError) or _has_status(error, 401, 403)


def _has_status(error: Exception, *statuses: int) -> bool:
    """Whether Azure answered with one of these."""
    return any(getattr(each, "status_code", None) in statuses for each in causes(error))


def lacks_credentials(error: Exception, files: Any) -> bool:
    """Whether it was refused because there were no credentials, rather than wrong ones."""
    if isinstance(error, NoCredentials):
        return True
    code = code_of(error)
    if code in ("401", "403") and hasattr(files, "credentials"):  # of gcsfs
        return getattr(files.credentials, "credentials", files) is None
    # Azure's library has one name for both; what the store itself has refused has a code.
    kinds = " ".join(type(each).__name__ for each in causes(error))
    return bool(_NO_CREDENTIALS.search(kinds)) and not ("ClientAuth" in kinds and code)


def is_there(files: Any, scheme: str, bucket: str) -> bool:
    """Whether there is a bucket: gcsfs does not tell whether that or an object is missing."""
    if scheme != "gs":
        return True
    with contextlib.suppress(Exception):
        try:
            files.call("GET", "b/{}/o", bucket, maxResults=1)
        except FileNotFoundError:
            return False
    return True


# -- how to write, and what is told of what was written ----------------------------------------


def how(scheme: str, data: bytes, kind: str = "") -> dict[str, Any]:
    """What a library must be told to write these bytes, as of that media type."""
    # gcsfs sends bytes between lines that have this in them, and never looks whether they have it.
    whole = {"chunksize": len(data)} if scheme == "gs" and b"--==0==" in data else {}
    return whole | (_kind(scheme, kind) if kind else {})


def _kind(scheme: str, kind: str) -> dict[str, Any]:
    if scheme == "s3":
        return {"ContentType": kind}
    if scheme == "gs":
        return {"content_type": kind}
    blobs: Any = import_module("azure.storage.blob")  # adlfs needs it as well
    return {"content_settings": blobs.ContentSettings(content_type=kind)}


def kind_in(facts: Any) -> str:
    """The media type in what a library tells of an object; empty where it is not told."""
    settings = facts.get("content_settings") or {}
    return str(
        facts.get("ContentType") or facts.get("contentType") or settings.get("content_type") or ""
    )


def md5_in(facts: Any) -> str:
    """The MD5 of an object's content, in hexadecimal; empty where it is not told."""
    settings = facts.get("content_settings") or {}
    if told := settings.get("content_md5"):  # of Azure
        return bytes(told).hex()
    if told := facts.get("md5Hash"):  # of Google
        return base64.b64decode(told).hex()
    tag = str(facts.get("ETag") or "").strip('"')  # of S3, unless it was written in parts
    return tag if re.fullmatch(r"[0-9a-f]{32}", tag) else ""
