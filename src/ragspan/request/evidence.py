"""What an answer rests on: the documents in the prompts that it comes from, and the other evidence there, as far as both are known.

An answer rests on the words of these prompts, no more and no less. Instructions, what the user said and what a model said
are not evidence.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from ragspan.matching import words_of
from ragspan.records import MAX_BACKGROUND, Background, BackgroundKind, RetrievedContext, UnknownContexts
from ragspan.request.contents import FilledPrompt, PayloadMessage, leaves_in
from ragspan.request.documents import SeenDocuments, prompt_of
from ragspan.request.pieces import PromptPiece, Source, has_earlier_summary, pieces_of, says_something
from ragspan.request.prompts import AnswerPrompts, Turn, answer_prompts, answering_calls, shares_words
from ragspan.request.steps import ModelStep, RerankStep, SearchStep
from ragspan.request.tree import RequestTree
from ragspan.turns import give_turn

_KINDS: Final[Mapping[Source, BackgroundKind]] = {
    Source.TOOL: "tool",
    Source.HISTORY: "history",
    Source.METADATA: "metadata",
    Source.DATA: "other",
}
_REMOTE = {"RemoteRunnable", "RemoteGraph"}  # steps that call a program elsewhere, which may search
_UNMARKED = 8  # words in one piece that may be a document, though nothing says so
_SAID_BEFORE = {Turn.SPOKEN, Turn.QUOTED}
_TAIL = 64
_ENDS = " \t\n.,;!?)]}"  # what a document before a piece may end with
_MAX_LOOKED_AT = 20_000


def evidence_of(tree: RequestTree, seen: SeenDocuments, question: str | None, response: str | None) -> dict[str, Any]:
    """What the answer of a request rests on, by the names of a record's fields."""
    models = tree.answering_models
    answering, is_said = answering_calls(models, response)
    if not models:  # a client that nobody sees may have used what templates gave out, as the prompt of its call
        answering = models = [
            ModelStep(
                name=step.name,
                parent=step.parent,
                started_ns=step.started_ns,
                ended_ns=step.ended_ns,
                prompt=prompt_of(step.output.messages, None),
            )
            for step in tree.steps
            if isinstance(step.output, FilledPrompt)
        ]
    prompts = answer_prompts(seen, question or "", models, answering)
    give_turn()
    pieces = pieces_of(tree, seen, prompts, question or "")
    has_summary = has_earlier_summary(tree, prompts)
    background = _background(pieces)
    contexts = _contexts(prompts)
    named = {each.text: each for each in tree.recorded if not any(each.text in context.text for context in contexts)}
    contexts += named.values()
    unreadable = _why_unreadable(tree, seen, prompts, models)
    why = unreadable if prompts.texts.is_complete else "too_much"
    if why is None and not contexts:
        why = _why_unknown(tree, seen, prompts, pieces, response)
        said = [part.text[:_MAX_LOOKED_AT] for part, turn in prompts.parts.values() if turn in _SAID_BEFORE]
        words = words_of((response or "")[:_MAX_LOOKED_AT]) if said else []
        if why is None and not background and words and shares_words(words, said):
            why = "earlier_answer"
    is_known = is_said or all(call.said or call.reply is not None for call in models)
    has_prompts = bool(tree.answering_models) and prompts.texts.is_complete and all(map(_has_prompt, prompts.calls))
    return {
        "contexts": tuple(contexts) if why is None else None,
        "background": background,
        "background_truncated": bool(contexts) and has_summary,
        "contexts_unknown": why,
        "prompts_seen": has_prompts
        and not any(part.unread for part, _ in prompts.parts.values())
        and unreadable != "provider_search",
        "from_model": is_said if tree.answering_models and response and is_known else None,
    }


def contexts_of_calls(
    tree: RequestTree, seen: SeenDocuments, question: str | None, calls: Sequence[ModelStep]
) -> list[RetrievedContext] | None:
    """The documents in the prompts that what these calls said comes from; None if there may be more."""
    prompts = answer_prompts(seen, question or "", tree.answering_models, calls)
    return _contexts(prompts) if prompts.texts.is_complete else None


def _contexts(prompts: AnswerPrompts) -> list[RetrievedContext]:
    """The documents in prompt order."""
    found: dict[str, RetrievedContext] = {}
    for placed in prompts.placed:
        match = placed.match
        if match.text not in found:
            own = placed.entry.context
            is_own = match.whole and match.text is own.text
            found[match.text] = own if is_own else replace(own, text=match.text, truncated=not match.whole)
    return list(found.values())


def _background(pieces: Iterable[PromptPiece]) -> tuple[Background, ...]:
    """The other evidence, in prompt order, each text once and as much as a record keeps."""
    found: dict[tuple[str, BackgroundKind], None] = {}
    left = MAX_BACKGROUND + 1
    for piece in pieces:
        kind = _KINDS.get(piece.source)
        text = piece.text.strip() if kind == "history" else piece.text.lstrip(_ENDS).strip().rstrip("([{")
        if kind is not None and left > 0 and (text, kind) not in found and says_something(text):
            found[text[:left], kind] = None
            left -= len(text)
    return tuple(Background(text=text, kind=kind) for text, kind in found)


# What cannot be known


def _has_prompt(call: ModelStep) -> bool:
    """Whether anything is known of what a model was asked."""
    return any(part.text.strip() or part.unread for part in call.prompt)


def _why_unreadable(
    tree: RequestTree, seen: SeenDocuments, prompts: AnswerPrompts, models: Sequence[ModelStep]
) -> UnknownContexts | None:
    """Why a part of what an answer rests on cannot be read."""
    shown = {end for part, turn in prompts.parts.values() if turn is Turn.THIS for end in part.unread}
    if shown and (seen.all or tree.all_of(SearchStep)):
        given = list[str]()  # the ends of pictures that came with the question, and of texts that may be one
        for _, leaf in leaves_in(tree.inputs):
            given += leaf.unread if isinstance(leaf, PayloadMessage) else ()
            given += [leaf[-_TAIL:]] if isinstance(leaf, str) and (len(leaf) >= _TAIL or "/" in leaf) else ()
        if not all(any(end and picture.endswith(end) for end in given) for picture in shown):
            return "picture"
    if any(call.reply is not None and call.reply.searched for call in models):
        return "provider_search"
    return "unmarked_text" if seen.unreadable else None


def _why_unknown(
    tree: RequestTree,
    seen: SeenDocuments,
    prompts: AnswerPrompts,
    pieces: Sequence[PromptPiece],
    response: str | None,
) -> UnknownContexts | None:
    """Why it cannot be known which documents reached the prompts, where none was found there; None if there were none."""
    searched = seen.empty_search or seen.has_earlier_documents or bool(tree.all_of(SearchStep))
    if any(step.name in _REMOTE for step in tree.steps):
        return "unseen_prompt"
    if not (tree.answering_models and all(map(_has_prompt, prompts.calls))):  # another client's, or not shown
        filters = tree.all_of(RerankStep)
        is_none = not seen.all or (filters and filters[-1].output == [])  # one that left nothing of what was found
        is_known = response is None or (searched and is_none)
        return None if is_known else "unseen_prompt"
    if not searched and not seen.all:
        return "unmarked_text"
    unmarked = (piece for piece in pieces if piece.source in {Source.UNKNOWN, Source.TOOL})
    return "unmarked_text" if any(len(words_of(piece.text)) >= _UNMARKED for piece in unmarked) else None
