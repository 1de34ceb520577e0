"""Frames that records name and the disk does not have: deleted, or lost with part of a bundle."""

from __future__ import annotations

from convergebench.gathering import Run


def is_bare(run: Run) -> bool:
    """Whether a run is held without any picture, as a submission to a leaderboard is."""
    return not (run.store.path / "frames").is_dir()


def absent_frames(run: Run) -> tuple[int, int]:
    """How many of a run's frames are not on the disk, and how many it should have."""
    refs = {
        ref.sha256: ref
        for chain in run.chains
        for ref in (chain.source, chain.truth, *(step.frame for step in chain.steps))
        if ref
    }
    gone = sum(not run.store.frame_path(ref).is_file() for ref in refs.values())
    return gone, len(refs)
