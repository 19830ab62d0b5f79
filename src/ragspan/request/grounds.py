"""What an answer rests on: the documents in the prompts behind it, and the other evidence there, as far as both can be known.

An answer rests on the words of these prompts, no more and no less. Instructions, what the user said and what a model said
are not evidence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from ragspan.matching import PromptWords, words_of
from ragspan.records import Background, RetrievedContext, UnknownContexts
from ragspan.request.answering import answering_calls, is_said_by
from ragspan.request.contents import FilledPrompt, PayloadMessage, prompt_of
from ragspan.request.documents import SeenDocuments
from ragspan.request.prompt_pieces import Piece, Pieces
from ragspan.request.prompt_provenance import Behind, Turn, prompts_behind
from ragspan.request.short_texts import texts_filled_in
from ragspan.request.step_records import ToContext
from ragspan.request.tree import ModelStep, RequestTree, RerankStep, SearchStep, Step
from ragspan.safe_copy import Snapshot

_REMOTE = {"RemoteRunnable", "RemoteGraph"}
"""Steps that call a program elsewhere, which may search."""
_UNMARKED = 8
"""Words in one piece that may be a document, though nothing says so."""
_TAIL = 64
_MAX_LOOKED_AT = 20_000


class Grounds(NamedTuple):
    """The fields of a record that say what its response is judged against."""

    contexts: tuple[RetrievedContext, ...] | None
    background: tuple[Background, ...]
    contexts_unknown: UnknownContexts | None
    prompts_seen: bool
    from_model: bool | None


def grounds_of(
    tree: RequestTree, seen: SeenDocuments, question: str | None, response: str | None, to_context: ToContext
) -> Grounds:
    """What the answer of a request rests on."""
    models = tree.answering_models
    answering = answering_calls(models, response)
    if not models:  # a client that nobody sees may have used what templates gave out
        answering = models = [
            _filled(step, step.output.messages, seen) for step in tree.steps if isinstance(step.output, FilledPrompt)
        ]
    filled = texts_filled_in(tree)
    behind = prompts_behind(seen.all, models, answering, seen.queries, question, filled)
    pieces = list(Pieces(tree, seen, behind, question or "", filled).all())
    evidence = [each for each in pieces if each.kind is not None]
    contexts = with_recorded(tree, _contexts(behind, to_context))
    unseen = _unseen(tree, seen, behind, models)
    why = unseen if behind.is_complete else "too_much"
    if why is None and not contexts:
        why = _why_unknown(tree, seen, behind, pieces, response)
        if why is None and not evidence and _rests_on_earlier_answers(behind, response):
            why = "earlier_answer"
    is_seen = bool(tree.answering_models) and behind.is_complete and all(map(_has_prompt, behind.runs))
    return Grounds(
        contexts=contexts if why is None else None,
        background=tuple(Background(text=each.text, kind=each.kind) for each in evidence if each.kind is not None),
        contexts_unknown=why,
        prompts_seen=is_seen
        and not any(part.unread for part, _ in behind.parts.values())
        and unseen != "provider_search",
        from_model=_is_from_model(tree.answering_models, response),
    )


def _is_from_model(models: Sequence[ModelStep], response: str | None) -> bool | None:
    """Whether a model said a response; None where it cannot be known, as where one has not been heard."""
    if not (models and response):
        return None
    return is_said_by(models, response) or (
        None if any(not run.said and run.reply is None for run in models) else False
    )


def _has_prompt(run: ModelStep) -> bool:
    """Whether anything is known of what a model was asked."""
    return any(part.text.strip() or part.unread for part in run.prompt)


def _filled(step: Step, messages: Sequence[Snapshot], seen: SeenDocuments) -> ModelStep:
    """What a prompt template gave out, as the prompt of a call that nobody saw."""
    return ModelStep(
        name=step.name,
        parent=step.parent,
        started_ns=step.started_ns,
        ended_ns=step.ended_ns,
        prompt=prompt_of(messages, None),
        seen={entry: entry.text for entry in seen.all},
    )


def contexts_behind(
    tree: RequestTree, seen: SeenDocuments, question: str | None, answering: Sequence[ModelStep], to_context: ToContext
) -> list[RetrievedContext] | None:
    """The documents in the prompts behind what these calls said; None if there may be more."""
    behind = prompts_behind(seen.all, tree.answering_models, answering, seen.queries, question, texts_filled_in(tree))
    return _contexts(behind, to_context) if behind.is_complete else None


def _contexts(behind: Behind, to_context: ToContext) -> list[RetrievedContext]:
    """The documents in prompt order."""
    found: dict[str, RetrievedContext] = {}
    for entry, text, is_whole, _ in behind.found:
        if text not in found:
            own = to_context(entry)
            found[text] = own if text is own.text and is_whole else replace(own, text=text, truncated=not is_whole)
    return list(found.values())


Answers = Iterable[tuple[str, Callable[[], Iterable[RetrievedContext] | None]]]
"""What earlier steps answered, each with what that rests on. A single word of a model, such as a grade, stands anywhere and is none."""


def originals_of(contexts: Iterable[RetrievedContext], answers: Answers) -> tuple[RetrievedContext, ...]:
    """The contexts behind those of these contexts that were themselves answers."""
    known = {context.text: context for context in contexts}
    given, waiting, leaves = set(known), list(known.values()), list[RetrievedContext]()
    said = [(text, behind) for text, behind in answers if text]
    for context in waiting:
        own = [list(behind() or ()) for text, behind in said if text in context.text]
        # A step's own context that happens to hold its answer was not made from it.
        inner = [each for some in own if all(each.text != context.text for each in some) for each in some]
        if not inner and context.text not in given:
            leaves.append(context)
        waiting += [known.setdefault(each.text, each) for each in inner if each.text not in known]
    return tuple(leaves)


def with_recorded(tree: RequestTree, contexts: Sequence[RetrievedContext]) -> tuple[RetrievedContext, ...]:
    """These contexts, and those that the program named and that are not among them."""
    by_id = {context.id: context.text for context in contexts if context.id is not None}
    known = {context.text for context in contexts}
    named = {
        context.text: context
        for context in tree.recorded
        if context.text not in known
        and context.text not in by_id.get(context.id or "", "")  # written with its metadata
    }
    return (*contexts, *named.values())


# What cannot be known


def _unseen(
    tree: RequestTree, seen: SeenDocuments, behind: Behind, models: Sequence[ModelStep]
) -> UnknownContexts | None:
    """Why a part of what an answer rests on cannot be read."""
    shown = {end for part, turn in behind.parts.values() if turn is Turn.THIS for end in part.unread}
    if shown and (seen.all or tree.all_of(SearchStep)) and not _are_the_users(shown, tree.inputs):
        return "picture"
    if any(run.reply is not None and run.reply.searched for run in models):
        return "provider_search"
    return "unmarked_text" if seen.unreadable else None


def _are_the_users(shown: Iterable[str], inputs: Snapshot) -> bool:
    """Whether pictures came with the question: their data or addresses end alike, whatever stands before."""
    given = [end for end in _ends_in(inputs) if end]
    return all(any(picture.endswith(end) for end in given) for picture in shown)


def _ends_in(value: Snapshot) -> Iterator[str]:
    """The ends of all pictures, and of texts that may be one, that a request was called with."""
    if isinstance(value, str):
        yield value[-_TAIL:] if len(value) >= _TAIL or "/" in value else ""
    elif isinstance(value, PayloadMessage):
        yield from value.unread
    elif isinstance(value, (dict, list)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _ends_in(item)


def _why_unknown(
    tree: RequestTree, seen: SeenDocuments, behind: Behind, pieces: Sequence[Piece], response: str | None
) -> UnknownContexts | None:
    """Why it cannot be known which documents reached the prompts, where none was found there; None if there were none."""
    searched = bool(seen.empty_search or seen.has_earlier_documents or tree.all_of(SearchStep))
    if any(step.name in _REMOTE for step in tree.steps):
        return "unseen_prompt"
    if not (tree.answering_models and all(map(_has_prompt, behind.runs))):  # another client's, or not shown
        filters = tree.all_of(RerankStep)
        is_none = not seen.all or (filters and filters[-1].output == [])  # one that left nothing of what was found
        is_known = response is None or (searched and is_none)
        return None if is_known else "unseen_prompt"
    if not searched and not seen.all:
        return "unmarked_text"
    unmarked = (each for each in pieces if each.kind is None or each.kind == "tool")
    return "unmarked_text" if any(len(words_of(each.text)[0]) >= _UNMARKED for each in unmarked) else None


def _rests_on_earlier_answers(behind: Behind, response: str | None) -> bool:
    """Whether a response repeats what the assistant said in earlier turns."""
    earlier = [part.text for part, turn in behind.parts.values() if turn is Turn.SPOKEN]
    words = words_of((response or "")[:_MAX_LOOKED_AT])[0]
    return bool(PromptWords([words_of(text[:_MAX_LOOKED_AT])[0] for text in earlier]).runs(words, 0))
