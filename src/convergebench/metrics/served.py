"""Metrics served by a model: VisualQuality-R1, and any vision-language model.

A picture is sent to an OpenAI-compatible endpoint with a prompt, k times; each answer is read for
its score (`served_answers`). Three metrics tell what came of it: the mean of the scores, their
spread, and the number of answers that held none. Answers are paid for, so they are shared: what one
of the three has asked, the others do not ask again, and frames with the same pixels (controls are
full of them) are asked about once. Nothing is invented: a picture none of whose answers holds a
score is null, and so is one for which a call failed.

The pixels are sent as PNG, as they are, unless `max_side` is set. Sample i is asked for with seed
`seed` + i; whether the same request gives the same answer is up to the server.
"""

from __future__ import annotations

import os
import queue
import statistics
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Literal, TypeVar
from urllib.parse import urlsplit

from convergebench.chatapi import PAUSE, ChatApi, ChatFailed, base_url, image_url
from convergebench.errors import MetricUnavailable
from convergebench.frame import encode, pixel_digest, resize
from convergebench.metric import MetricSpec, Needs, NoScore, Picture, StepView
from convergebench.metrics.served_answers import read_score, spoken
from convergebench.metrics.served_options import (
    Connection,
    Family,
    Question,
    question,
    read_options,
)
from convergebench.registry import PluginName

VERSION: Final = "1"
GUIDE: Final = "docs/guides/served-metrics.md"
_SHOWN: Final = 120

T = TypeVar("T")
Statistic = Literal["score", "spread", "unparsed"]

SAMPLES: Final[dict[Statistic, int]] = {"score": 1, "spread": 5, "unparsed": 1}
"""How often a picture is asked about by default: once, as published; a spread needs several."""

TITLES: Final[dict[Statistic, str]] = {
    "score": "{}",
    "spread": "{}: standard deviation of the scores",
    "unparsed": "{}: answers without a score",
}

VQR1: Final = Family(
    name="visualquality-r1",
    title="VisualQuality-R1: overall quality by a reasoning model",
    prompt="visualquality-r1",
    # Sampling of the published vLLM script (README.md at a16dcdb). Every field is sent, because
    # `vllm serve` takes what is missing from the model's own generation_config.json: top_k 1 and a
    # repetition penalty of 1.05. The script allows 512 tokens, those for single pictures 2048: an
    # answer that fits is the same, and one that does not is not lost.
    temperature=lambda samples: 0.1,
    fixed={
        "top_p": 1.0,
        "top_k": 50,
        "repetition_penalty": 1.0,
        # As in the published code: the chat template puts "Picture 1: " before the picture.
        "chat_template_kwargs": {"add_vision_id": True},
    },
    model="TianheWu/VisualQuality-R1-7B",
    variable="CONVERGEBENCH_VQR1",
)

VLM: Final = Family(
    name="vlm",
    title="Overall quality by a vision-language model",
    prompt="visualquality-r1",
    # Several samples at temperature 0 would be paid for and be one answer.
    temperature=lambda samples: 0.0 if samples == 1 else 1.0,
    fixed={},
    model="",
    variable="CONVERGEBENCH_VLM",
)


@dataclass(frozen=True)
class Answer:
    """What one call came to: a score, or why there is none.

    `failed` is the time of a call that nobody answered: its siblings need not try again at once.
    """

    value: float | None
    problem: str = ""
    failed: float = 0.0

    @property
    def worn(self) -> bool:
        """Whether it is time to ask again."""
        return self.failed > 0 and time.monotonic() > self.failed + PAUSE


_MEMORY: Final[dict[tuple[str, str, str], dict[int, Answer]]] = {}
"""Answers by server, call, pixels, and sample: those of the last `REMEMBERED` pictures."""
REMEMBERED: Final = 20_000


class ServedMetric:
    """A statistic of a model's answers about each picture."""

    def __init__(
        self, spec: MetricSpec, asked: Question, connection: Connection, key: str, what: Statistic
    ) -> None:
        self.spec: Final = spec
        self._asked = asked
        self._call = asked.call
        self._connection = connection
        self.together: Final = 4 * connection.concurrency  # so that few calls wait for the last one
        self._what = what
        self._api = ChatApi(
            connection.url,
            key,
            timeout=connection.timeout,
            deadline=max(300.0, 2 * connection.timeout),
        )

    def score(self, views: Sequence[StepView]) -> Sequence[float | NoScore]:
        """One value per view; what was asked before is not asked again."""
        digests = [view.frame.shared("pixel digest", _digest) for view in views]
        different = dict(zip(digests, (view.frame for view in views), strict=True))
        known = {digest: self._known(digest) for digest in different}
        wanted = range(self._asked.samples)
        todo: list[tuple[str, int]] = []
        tasks: list[Callable[[], Answer]] = []
        for digest, picture in different.items():
            had = known[digest]
            lacking = [sample for sample in wanted if sample not in had or had[sample].worn]
            image = self._image(picture) if lacking else ""
            todo += [(digest, sample) for sample in lacking]
            tasks += [partial(self._ask, image, sample) for sample in lacking]
        answers = in_parallel(tasks, self._connection.concurrency)
        for (digest, sample), answer in zip(todo, answers, strict=True):
            known[digest][sample] = answer
        return [
            summary([known[digest][sample] for sample in wanted], self._what) for digest in digests
        ]

    def _known(self, digest: str) -> dict[int, Answer]:
        """The answers about a picture so far, by sample."""
        while len(_MEMORY) >= REMEMBERED:
            del _MEMORY[next(iter(_MEMORY))]
        return _MEMORY.setdefault((self._connection.url, self._call, digest), {})

    def _image(self, picture: Picture) -> str:
        pixels, limit = picture.pixels, self._asked.max_side
        if limit is not None and max(picture.size) > limit:
            scale = limit / max(picture.size)
            width, height = (max(1, round(side * scale)) for side in picture.size)
            pixels = resize(pixels, width, height)
        return image_url(encode(pixels))

    def _ask(self, image: str, sample: int) -> Answer:
        asked = self._asked
        request = asked.request(image, sample, limit=self._connection.limit)
        request["model"] = self._connection.model
        try:
            reply = self._api.ask(request)
        except ChatFailed as failure:
            return Answer(None, str(failure), time.monotonic())
        if asked.pin and reply.model != asked.pin:
            problem = f"answered by {reply.model or 'a model without a name'}, not by {asked.pin}"
            return Answer(None, self._api.scrub(problem), time.monotonic())
        if reply.refusal or reply.finish == "content_filter":
            return Answer(None, f"refused: {self._quoted(reply.refusal or reply.text)}")
        whole = reply.finish != "length"
        value = read_score(reply.text, asked.scale, whole=whole)
        if value is None:
            cut = "" if whole else "cut off (max_tokens): "
            return Answer(None, cut + self._quoted(spoken(reply.text).strip() or reply.text))
        return Answer(value)

    def _quoted(self, text: str) -> str:
        line = self._api.scrub(" ".join(text.split()))
        return repr(line if len(line) <= _SHOWN else line[: _SHOWN - 1] + "…")


def _digest(picture: Picture) -> str:
    return pixel_digest(picture.pixels)


def summary(answers: Sequence[Answer], what: Statistic) -> float | NoScore:
    """Mean, sample standard deviation, or number of answers without a score."""
    count = len(answers)
    failed = [answer for answer in answers if answer.failed]
    if failed:
        # Not the mean of the rest: the number of samples would differ from picture to picture.
        return NoScore(f"{len(failed)} of {count} calls failed: {failed[0].problem}")
    values = [answer.value for answer in answers if answer.value is not None]
    if what == "unparsed":
        return float(count - len(values))
    needed = 2 if what == "spread" else 1
    if len(values) < needed:
        first = next((answer.problem for answer in answers if answer.value is None), "")
        held = f"{len(values)} of {count} answers held a score"
        held += f", {needed} needed" if needed > 1 else ""
        return NoScore(f"{held}; first without: {first}" if first else held)
    return statistics.stdev(values) if what == "spread" else statistics.fmean(values)


def in_parallel(tasks: Sequence[Callable[[], T]], count: int) -> list[T]:
    """The results of some tasks, in order, from at most so many threads.

    The threads are daemons: an interrupt ends the program at once, not after the longest call.
    """
    todo: queue.SimpleQueue[tuple[int, Callable[[], T]]] = queue.SimpleQueue()
    results: dict[int, T] = {}
    errors: list[BaseException] = []
    for numbered in enumerate(tasks):
        todo.put(numbered)

    def work() -> None:
        while not errors:
            try:
                number, task = todo.get_nowait()
            except queue.Empty:
                return
            try:
                results[number] = task()
            except BaseException as error:  # raised by the waiting thread
                errors.append(error)

    threads = [
        threading.Thread(target=work, daemon=True, name=f"served-{number}")
        for number in range(min(count, len(tasks)))
    ]
    for thread in threads:
        thread.start()
    try:
        for thread in threads:
            thread.join()
    except BaseException:
        errors.append(KeyboardInterrupt())  # no thread begins another task
        raise
    if errors:
        raise errors[0]
    return [results[number] for number in range(len(tasks))]


class Factory:
    """Opens the metrics of a family for one statistic: an entry point.

    `spec` is the card of the plain name; `card` that of any configuration, for which neither a
    server nor a key is needed.
    """

    def __init__(self, family: Family, what: Statistic, doc: str) -> None:
        self._family = family
        self._what: Statistic = what
        self._name = family.name if what == "score" else f"{family.name}-{what}"
        self.__doc__ = doc
        self.spec: Final = self.card()

    def card(self, model: str = "", **options: str) -> MetricSpec:
        """The card of a configuration. Raises SettingsError."""
        values = read_options(self._name, options)
        return self._card(self._question(model, values), bool(values.get("url")))

    def __call__(self, model: str = "", **options: str) -> ServedMetric:
        """The metric, ready to ask.

        Raises:
            MetricUnavailable: The endpoint, the model or the key is not known.
            SettingsError: An option is not legal.
        """
        family, name = self._family, self._name
        values = read_options(name, options)
        model = model or os.environ.get(f"{family.variable}_MODEL", "") or family.model
        if not model:
            raise MetricUnavailable(
                f"{name} needs a model: {name}:MODEL,url=http://localhost:11434/v1 ({GUIDE})"
            )
        asked = self._question(model, values)
        url = values.get("url") or os.environ.get(f"{family.variable}_URL", "")
        if not url:
            raise MetricUnavailable(
                f"{name} needs a server of {model}: set {family.variable}_URL to its "
                f"OpenAI-compatible address, for example http://localhost:8000/v1 ({GUIDE})"
            )
        url = base_url(url)
        connection = Connection(
            url=url,
            key_env=values.get("key_env", ""),
            model=model,
            timeout=values.get("timeout", 120.0),
            concurrency=values.get("concurrency", 4),
        )
        key = self._key(connection)
        return ServedMetric(self._card(asked, True), asked, connection, key, self._what)

    def _question(self, model: str, values: dict[str, Any]) -> Question:
        published = self._family.model
        # A server that has the model in a folder serves it by the folder's name.
        if not model or model.rstrip("/").rpartition("/")[2] == published.rpartition("/")[2]:
            model = published
        return question(self._family, model, values, SAMPLES[self._what])

    def _key(self, connection: Connection) -> str:
        """The key, from the environment and nowhere else; OpenAI's only for OpenAI."""
        openai = urlsplit(connection.url).hostname == "api.openai.com"
        fallback = "OPENAI_API_KEY" if openai else f"{self._family.variable}_KEY"
        key = os.environ.get(connection.key_env or fallback, "")
        if not key and connection.key_env:
            raise MetricUnavailable(f"{self._name}: the variable that key_env names is not set")
        if not key and openai:
            raise MetricUnavailable(f"{self._name}: set {fallback}, or name another with key_env")
        return key

    def _card(self, asked: Question, reachable: bool) -> MetricSpec:
        family, what = self._family, self._what
        low, high = asked.scale
        title = family.title
        if asked.prompt.name != family.prompt:
            title += f" ({asked.prompt.title or asked.prompt.name})"
        ranges = {
            "score": (low, high),
            "spread": (0.0, (high - low) / 2),
            "unparsed": (0.0, float(asked.samples)),
        }
        model = None if asked.model == family.model else asked.model
        return MetricSpec(
            name=str(PluginName(self._name, model, asked.options)),
            version=f"{VERSION}-{asked.digest}",
            kind="no-reference",
            higher_is_better=asked.prompt.higher_is_better if what == "score" else False,
            typical=ranges[what],
            title=TITLES[what].format(title),
            paper=asked.prompt.paper,
            cost="heavy",
            needs=Needs(settings=() if reachable else (f"{family.variable}_URL",)),
            resources=None,
        )


visualquality_r1: Final = Factory(
    VQR1,
    "score",
    """Overall quality from 1 to 5 by VisualQuality-R1, a model trained to reason and to rank.

    The mean of the scores in its answers to the published prompt (Wu et al., NeurIPS 2025). Needs a
    server of the model (CONVERGEBENCH_VQR1_URL). Scores below 1 occur, and are kept.
    """,
)
visualquality_r1_spread: Final = Factory(
    VQR1,
    "spread",
    """Sample standard deviation of the scores in VisualQuality-R1's answers (5 by default).""",
)
visualquality_r1_unparsed: Final = Factory(
    VQR1,
    "unparsed",
    """Number of VisualQuality-R1's answers that held no score.""",
)
vlm: Final = Factory(
    VLM,
    "score",
    """The score that a vision-language model gives: `vlm:MODEL,url=…`, with a prompt of choice.

    The mean of the scores in its answers; by default the prompt is that of VisualQuality-R1.
    """,
)
vlm_spread: Final = Factory(
    VLM,
    "spread",
    """Sample standard deviation of the scores in a vision-language model's answers.""",
)
vlm_unparsed: Final = Factory(
    VLM,
    "unparsed",
    """Number of a vision-language model's answers that held no score.""",
)
