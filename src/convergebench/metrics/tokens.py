"""CLIP's tokenizer: text to the token numbers its text tower was trained on.

Byte-pair encoding (Sennrich et al. 2016, https://arxiv.org/abs/1508.07909) over bytes: a word
starts as one symbol per UTF-8 byte, its last symbol marked as the end of a word; then, over and
over, the pair of neighbours that stands first in `merges.txt` is joined wherever it occurs. The
vocabulary follows from the merges: 256 bytes, 256 bytes that end a word, the merges in order, start
and end.

Written by hand because it is a page of code and the libraries that have it (`transformers` with
`tokenizers`, `openai-clip` with torch) are not in the core. It gives what OpenAI's tokenizer gives
for any text that `ftfy` has nothing to repair in (broken encodings, curly quotes, ligatures): that
step is left out, as Hugging Face leaves it out. What is a letter or a number is as of the Unicode
tables that Python brings.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Final

from convergebench.errors import InputError

CONTEXT: Final = 77
"""Tokens the text tower sees, start and end included; what is longer is cut, as OpenAI does."""

START: Final = "<|startoftext|>"
END: Final = "<|endoftext|>"
END_OF_WORD: Final = "</w>"

# Unicode's White_Space. Python's \s has four control characters more, which the others keep.
_SPACE: Final = re.compile("[\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+")
# Without regard to case, so that the long s ends a contraction, as in OpenAI's pattern.
_WHOLE: Final = re.compile(
    rf"{re.escape(START)}|{re.escape(END)}|'s|'t|'re|'ve|'m|'ll|'d", re.IGNORECASE
)
_RUN: Final = re.compile("L+|N|O+")


def _byte_symbols() -> dict[int, str]:
    """A visible character for each byte, in the order of the vocabulary.

    The printable characters of Latin-1 stand for themselves, the rest for what follows 255.
    """
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = sorted(set(range(256)) - set(printable))
    symbols = {byte: chr(byte) for byte in printable}
    return symbols | {byte: chr(256 + n) for n, byte in enumerate(others)}


class Tokenizer:
    """Texts to token numbers.

    Args:
        merges: The pairs to join, most important first.
    """

    def __init__(self, merges: Sequence[tuple[str, str]]) -> None:
        self._bytes: Final = _byte_symbols()
        self._ranks: Final = {pair: rank for rank, pair in enumerate(merges)}
        single = list(self._bytes.values())
        endings = [symbol + END_OF_WORD for symbol in single]
        joined = [left + right for left, right in merges]
        vocabulary = [*single, *endings, *joined, START, END]
        self.numbers: Final = {symbol: number for number, symbol in enumerate(vocabulary)}

    @classmethod
    def read(cls, path: Path) -> Tokenizer:
        """The tokenizer of a `merges.txt`: a pair a line, after a line that names the version.

        Raises:
            InputError: The file is not like that.
        """
        try:
            lines = path.read_text(encoding="utf-8").split("\n")
        except UnicodeDecodeError as error:
            raise InputError(f"{path}: expected lines of text, got {error.reason}") from error
        pairs = [line.split() for line in lines if line.strip()]
        if pairs and pairs[0][0] == "#version:":
            del pairs[0]
        for number, pair in enumerate(pairs, 1):
            if len(pair) != 2:
                raise InputError(f"{path}: merge {number} has {len(pair)} parts, expected 2")
        if not pairs:
            raise InputError(f"{path}: expected pairs to merge, found none")
        return cls([(left, right) for left, right in pairs])

    @property
    def size(self) -> int:
        """How many tokens there are."""
        return len(self.numbers)

    def encode(self, text: str, context: int = CONTEXT) -> list[int]:
        """Token numbers of a text from start to end, at most `context` of them."""
        found = [self.numbers[START]]
        for word in _words(_clean(text)):
            if len(found) >= context:
                break
            found += self._word(word)
        return [*found[: context - 1], self.numbers[END]]

    def _word(self, word: str) -> list[int]:
        if word in (START, END):
            return [self.numbers[word]]
        symbols = [self._bytes[byte] for byte in word.encode("utf-8", errors="replace")]
        symbols[-1] += END_OF_WORD
        unranked = len(self._ranks)
        while len(symbols) > 1:
            pairs = set(pairwise(symbols))
            best = min(pairs, key=lambda pair: self._ranks.get(pair, unranked))
            if best not in self._ranks:
                break
            symbols = _join(symbols, best)
        return [self.numbers[symbol] for symbol in symbols]


def _clean(text: str) -> str:
    composed = unicodedata.normalize("NFC", text)
    # Twice, as OpenAI does: their captions came from web pages that had been escaped twice.
    plain = html.unescape(html.unescape(composed)).strip()
    return _SPACE.sub(" ", plain).strip().lower()


def _words(text: str) -> Iterator[str]:
    r"""Contractions, runs of letters, single digits, and runs of anything else but space.

    By hand because the `re` module cannot ask for letters (`\p{L}`) or numbers (`\p{N}`).
    """
    kinds = "".join(map(_kind, text))
    at = 0
    while at < len(text):
        found = _WHOLE.match(text, at) or _RUN.match(kinds, at)
        if found is None:
            at += 1
            continue
        yield text[at : found.end()]
        at = found.end()


def _kind(character: str) -> str:
    category = unicodedata.category(character)[0]
    if category in "LN":
        return category
    return " " if _SPACE.match(character) else "O"


def _join(symbols: Sequence[str], pair: tuple[str, str]) -> list[str]:
    joined: list[str] = []
    at = 0
    while at < len(symbols):
        if tuple(symbols[at : at + 2]) == pair:
            joined.append(symbols[at] + symbols[at + 1])
            at += 2
        else:
            joined.append(symbols[at])
            at += 1
    return joined
