"""A command, run in this process."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from typer.testing import CliRunner, Result

from convergebench.cli import app
from convergebench.errors import ConvergeBenchError


@dataclass(frozen=True)
class Command:
    """One of `convergebench`'s commands, by its name."""

    name: str

    def invoke(self, *words: str | Path) -> Result:
        """Run it."""
        return CliRunner().invoke(app, [self.name, *map(str, words)])

    def told(self, *words: str | Path) -> str:
        """What it prints; it must end well."""
        result = self.invoke(*words)
        assert result.exit_code == 0, result.output
        return result.stdout

    def wrong(self, *words: str | Path) -> str:
        """What it complains of; it must."""
        error = self.invoke(*words).exception
        assert isinstance(error, ConvergeBenchError), error
        return str(error)
