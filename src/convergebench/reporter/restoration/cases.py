"""Cases of infidelity and over-generation: how many by method, and what they look like."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from convergebench.reporter.restoration.shots import INPUT, TRUTH, View, output_key
from convergebench.reporter.restoration.slider import Album
from convergebench.restoration.result import Case, CaseCount, CaseMean, Method, Restoration


@dataclass(frozen=True)
class Counted:
    """A method's cases; `share` is its rate over the highest one, the length of its bar."""

    count: CaseCount
    method: Method
    share: float


@dataclass(frozen=True)
class Seen:
    """One case with its pictures: what it should look like, and what it looks like."""

    case: Case
    method: Method
    home: View | None
    view: View | None
    link: str


@dataclass(frozen=True)
class Cases:
    """All of one kind, as one judge told them."""

    kind: str
    by: str
    counts: tuple[Counted, ...]
    means: tuple[CaseMean, ...]
    seen: tuple[Seen, ...]

    @property
    def title(self) -> str:
        """A heading."""
        return self.kind.capitalize()


def cases_of(found: Restoration, album: Album) -> list[Cases]:
    """Infidelity first, then over-generation; by people, judges and flags apart."""
    methods = {method.id: method for method in found.methods}
    every: Sequence[CaseCount | Case] = (*found.counts, *found.cases)
    kinds = dict.fromkeys((one.kind, one.by) for one in every)
    result = []
    for kind, by in sorted(kinds, key=lambda each: each[0] != "infidelity"):
        counts = [c for c in found.counts if (c.kind, c.by) == (kind, by)]
        rates = {c.method: c.cases / c.looked if c.looked else 0.0 for c in counts}
        most = max(rates.values(), default=0.0) or 1.0
        result.append(
            Cases(
                kind,
                by,
                tuple(Counted(c, methods[c.method], rates[c.method] / most) for c in counts),
                tuple(m for m in found.case_means if (m.kind, m.by) == (kind, by)),
                tuple(
                    _seen(case, methods[case.method], album)
                    for case in found.cases
                    if (case.kind, case.by) == (kind, by)
                ),
            )
        )
    return result


def _seen(case: Case, method: Method, album: Album) -> Seen:
    home = album.view(case.source, TRUTH) or album.view(case.source, INPUT)
    view = album.view(case.source, output_key(case.method, case.repeat))
    return Seen(case, method, home, view, album.link(case.source, case.method, case.repeat))
