"""Judges by name, for settings, arguments and commands: one catalogue of all there are.

A name is that of the embedded judge (`overlap`), or a provider and a model (`anthropic:claude-haiku-4-5`, a row of `presets`), or a
small judge and its server, or that of an entry point of the group `ragspan_judge`: a class or a function, which is called with what
follows the first colon of the name, if anything does, and with the options by name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from ragspan.arguments import meant
from ragspan.exceptions import ConfigurationError
from ragspan.installed import load_part, part_names
from ragspan.judges.jury import Jury
from ragspan.judges.presets import PRESETS
from ragspan.judges.session import Price

if TYPE_CHECKING:
    from ragspan.judges.judge_protocols import Judge

JUDGES: Final = "ragspan_judge"
"""The group of entry points."""
EMBEDDED: Final = "overlap"
_SMALL: Final[Mapping[str, str]] = {
    "lettucedetect": "http://localhost:8000",
    "minicheck": "http://localhost:11434/v1",
    "granite-guardian": "http://localhost:8000/v1",
}
"""Small judges behind a server, each with an address such as it has; `ragspan.judges.small_judges` has their forms."""
_LEAST_KEY: Final = 5
"""Characters of a text that may be a key; a shorter one would be found in any word."""
JudgeChoice: TypeAlias = "str | Judge | Sequence[str | Judge]"
"""A judge or its name; a list of several is a jury."""


def named_judge(name: str, **options: Any) -> Judge:
    """The judge of this name: `"overlap"`, `"anthropic:claude-haiku-4-5"`, `"langchain:google_vertexai:gemini-2.5-flash"`.

    Names with commas between them are a `Jury`.

    Args:
        name: as in `RAGSPAN_JUDGE`; `ragspan judges` lists what there is.
        options: of the judge, such as `timeout=60`: those of `OpenAIJudge` for a provider. A price may be numbers, as
            `[0.15, 0.60]`.

    Raises:
        ConfigurationError: there is no such judge, it has no such option, or its key is missing. The message shows no option's
            value.
    """
    return judge_of(name, [options])


def judge_of(names: str, options: Sequence[Mapping[str, Any]]) -> Judge:
    """The judge of this name, or the jury of these names, which have commas between them; options are for all, or one for each.

    Raises:
        ConfigurationError: as `named_judge`; or there are as many options as neither fits.
    """
    parts = [part.strip() for part in names.split(",") if part.strip()] or [names]
    if len(options) not in {0, 1, len(parts)}:
        raise ConfigurationError(
            f"the judge's options are for {len(options)} judges, but {len(parts)} {'is' if len(parts) == 1 else 'are'} named:"
            " give one for all, or one for each"
        )
    each = options if len(options) == len(parts) else [*(options or [{}])] * len(parts)
    judges = [_made(name, own) for name, own in zip(parts, each, strict=True)]
    return judges[0] if len(judges) == 1 else Jury(judges)


def judge_part(name: str) -> Callable[..., Any]:
    """What an installed package registers as the judge or verifier of this name.

    Raises:
        ConfigurationError: there is none, or its package cannot be imported.
    """
    part: Callable[..., Any] = load_part(JUDGES, name, f"{name} is not installed{_install_hint(name)}")
    return part


def texts_in(options: object) -> Iterator[str]:
    """All texts in the values of a judge's options, of which any may be a key."""
    if isinstance(options, str):
        yield options
    elif isinstance(options, (Mapping, list, tuple)):
        for inner in options.values() if isinstance(options, Mapping) else options:
            yield from texts_in(inner)


def _made(name: str, options: Mapping[str, Any]) -> Judge:
    kind, _, rest = (part.strip() for part in name.partition(":"))
    kind = kind.lower()
    if "://" in name and kind not in _SMALL:  # the value is not shown: an address may have a password in it
        raise ConfigurationError(
            "a judge is a name and a model, such as 'openai:gpt-4o-mini', without an address: put that into RAGSPAN_JUDGE_BASE_URL, or "
            "give base_url="
        )
    if kind in {*_SMALL, *PRESETS} and not rest:
        what, example = ("server", _SMALL[kind]) if kind in _SMALL else ("model", PRESETS[kind].example)
        raise ConfigurationError(
            f"{name!r} names no {what}: the judge should be like '{kind}:{example}'; `ragspan judges` lists what there is"
        )
    make, arguments = _maker(name, kind, rest)
    given = dict(options)
    try:
        if isinstance(price := given.get("price"), (list, tuple)):
            given["price"] = Price(*map(float, price))
        return cast("Judge", make(*arguments, **given))
    except Exception as error:  # noqa: BLE001 - a judge of another package may raise anything for a missing key or package
        words = str(error)
        for text in sorted(filter(None, texts_in(options)), key=len, reverse=True):  # any may be a key
            words = words.replace(repr(text), "a text").replace(text, "…" if len(text) >= _LEAST_KEY else text)
        if not isinstance(error, ConfigurationError):
            shown = kind if kind in _SMALL else name
            words = f"the judge {shown!r} cannot be made: {type(error).__name__}: {' '.join(words.split())}"
        raise ConfigurationError(words) from None


def _maker(name: str, kind: str, rest: str) -> tuple[Callable[..., Any], Sequence[str]]:
    """What makes the judge, and what it is called with besides the options."""
    from ragspan import judges

    if kind == EMBEDDED and not rest:
        return judges.OverlapJudge, ()
    if kind in _SMALL:
        return judges.SmallJudge, (kind, rest)
    if kind in PRESETS:
        return partial(judges.OpenAIJudge, provider=kind), (rest,)
    names = [EMBEDDED, *PRESETS, *part_names(JUDGES), *_SMALL]
    if kind in names:
        return judge_part(kind), [rest] if rest else []
    spelling, _, model = name.replace("/", ":", 1).partition(":")
    families = [one.name for one in PRESETS.values() if not model and spelling.lower().startswith(one.families)]
    guess = f"; did you mean {f'{families[0]}:{spelling}'!r}?" if families else meant(spelling, names)
    shown = [f"{one}:<model>" if one in PRESETS else f"{one}:<address>" if one in _SMALL else one for one in names]
    raise ConfigurationError(
        f"there is no judge {name!r} here (by judge or RAGSPAN_JUDGE){guess}; there are: {', '.join(shown)}{_install_hint(kind)}"
    )


def _install_hint(name: str) -> str:
    """For the extras of ragspan that bring a judge or verifier of the same name."""
    return f"; pip install 'ragspan[{name}]'" if name in {"hhem", "langchain"} else ""
