"""Gathering: one run, or several, as one body to analyse.

One run is taken as it is. Of several, what is the same becomes one and what only shares a name is
told apart, so that no chain is ever paired with one that walked another picture or another cycle:

* a *source* is the same where its stored bytes are, a *cycle* where its kind and edits are;
* an *editor* is the same where its version is and no chain of it differs; otherwise it appears
  once per version, or per run;
* every cycle is followed as far as the shortest run goes.

Runs that share nothing are refused.
"""

from __future__ import annotations

from convergebench.gathering.body import (
    Gathered,
    Plan,
    Run,
    Variant,
    longest,
    variant_of,
)
from convergebench.gathering.opening import gather

__all__ = [
    "Gathered",
    "Plan",
    "Run",
    "Variant",
    "gather",
    "longest",
    "variant_of",
]
