"""Frames that records name and the disk does not have: deleted, or lost with part of a bundle."""

from __future__ import annotations

from convergebench.gathering import Run


def is_bare(run: Run) -> bool:
    """Whether a run is held without any picture, as a submission to a leaderboard is."""
    return not (run.store.is_remote or (run.store.path / "frames").is_dir())


def absent_frames(run: Run) -> tuple[int, int]:
    """How many of a run's frames are not on the disk, and how many it should have.

    Of a run on object storage none is: a record is only stored once its frame is, and looking for
    every one would take as many requests. `verify` does.
    """
    refs = {
        ref.sha256: ref
        for chain in run.chains
        for ref in (chain.source, chain.truth, *(step.frame for step in chain.steps))
        if ref
    }
    if run.store.is_remote:
        return 0, len(refs)
    here = run.store.frame_names()  # a listing of 256 directories, not a look at every file
    return sum(run.store.frame_name(ref) not in here for ref in refs.values()), len(refs)
