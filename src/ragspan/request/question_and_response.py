"""Which text of a request was the question, which the answer, and how it ended; read from its tree, in the worker."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property

from ragspan import field_names
from ragspan.matching import has_words
from ragspan.provider_replies import facts_of
from ragspan.records import AnswerStatus
from ragspan.request.contents import (
    Document,
    PayloadMessage,
    as_json,
    content_text,
    json_in,
    normalise_spaces,
    texts_in,
)
from ragspan.request.documents import SeenDocuments
from ragspan.request.steps import ModelStep, SearchStep
from ragspan.request.tree import RequestTree
from ragspan.safe_copy import CUT, OPAQUE, ObjectFields, Opaque, Snapshot
from ragspan.text.answers import without_thoughts

_FILLERS = {"final", "full", "the", "my", "your", "ai", "llm", "model", "bot", "agent", "assistant", "rag"}
_ON_THE_WAY = {"plan", "outline", "notes", "critique", "feedback", "review", "reflection", "evaluation", "verdict"}
"""Words in the names of fields in which a model prepares an answer, or judges it."""
_LEFT = {"GeneratorExit", "CancelledError", "KeyboardInterrupt"}
_STOPPED = {"GraphInterrupt", "NodeInterrupt", "GraphDrained"}


# The question


def question_of(tree: RequestTree, queries: Sequence[str]) -> str | None:
    """The user's own words; `queries` are what was searched with."""
    for asked in (tree.inputs, tree.asked_before):
        if (question := question_in(asked, queries)) is not None:
            return question
    saved = [question for state in tree.saved_states if (question := question_in(state, queries)) is not None]
    found = [question for question in saved if question not in queries]  # those are what a model asked its tools
    return next(iter([*found, *saved, *(step.query for step in tree.all_of(SearchStep)[:1])]), None)


def question_in(inputs: Snapshot, queries: Sequence[str] = ()) -> str | None:
    """The user's own words in what a request was called with.

    Args:
        inputs: a text, messages, or fields of which one holds the question, maybe fields within fields.
        queries: what was searched for; a field that equals one of them is the question unless a sure name tells.
    """
    if isinstance(inputs, str):
        return inputs if inputs.strip() else None
    leaves = list(_leaves(inputs))
    texts = [(key, value) for key, value in leaves if isinstance(value, str) and value.strip()]
    talks = [
        (talk, said)
        for _, talk in leaves
        if isinstance(talk, list) and (said := [each.text for each in talk if each.role == "human"][-1]).strip()
    ]
    spoken = [said for _, said in talks]
    named = [text for wanted in field_names.QUESTION for key, text in texts if key == wanted]
    often = [text for wanted in field_names.OFTEN_QUESTION for key, text in texts if key == wanted]
    going_on = [said for talk, said in talks if talk[-1].role != "ai"]
    asking = [(key, text) for key, text in texts if not field_names.words_in_name(key) & field_names.NOT_ASKING]
    searched = [text for _, text in (*asking, *texts) if text in queries]
    alike = [text for word in field_names.ASKING for key, text in asking if word in key]
    count = Counter(key for key, _ in asking)  # of several in a list none is asked more than the others
    rest = sorted((text for key, text in asking if count[key] == 1 or "?" in text), key=lambda text: "?" not in text)
    return next(iter([*named, *searched, *often, *going_on, *alike, *rest, *spoken]), None)


def _leaves(value: Snapshot, key: str = "") -> Iterator[tuple[str, str | list[PayloadMessage]]]:
    """The texts and conversations in a payload by the name of their field, the deeper ones last."""
    deeper: list[tuple[str, Snapshot]] = []
    if isinstance(value, dict):
        for name, item in value.items():
            own = name.lower()
            if isinstance(item, str):
                yield own, item
            elif "history" not in own:
                deeper.append((own, item))
    elif isinstance(value, list):
        talk = [
            PayloadMessage("human", item) if isinstance(item, str) else item
            for item in value
            if isinstance(item, PayloadMessage) or (key.endswith("messages") and isinstance(item, str))
        ]
        if any(message.role == "human" for message in talk):
            yield key, talk
        else:
            deeper += [(key, item) for item in reversed(value) if isinstance(item, (dict, list, str))]
    elif isinstance(value, str):
        yield key, value
    elif isinstance(value, PayloadMessage) and value.role == "human":
        yield key, [value]
    for name, item in deeper:
        yield from _leaves(item, name)


# How it ended


def answer_of(tree: RequestTree, seen: SeenDocuments) -> tuple[AnswerStatus, str | None] | None:
    """How a request ended, and what the caller got as the answer, without what a model thought before it; None if it answered nothing."""
    status, response = _status_and_words(tree, seen.queries)
    answer = (without_thoughts(response) or None) if response else response
    if answer is None:
        has_asked = any(isinstance(step, (ModelStep, SearchStep)) for step in tree.steps)
        return (status, None) if status != "complete" or has_asked or tree.recorded else None  # a filled prompt, say
    if not (tree.grouped or tree.recorded or tree.answering_models or tree.run_type == "engine"):
        texts = (entry.text.strip() for entry in seen.all)
        if any(text and text in answer for text in texts):
            return None  # a search with a formatter: no model was asked, and what came out is what was found
    return status, answer


def _status_and_words(tree: RequestTree, queries: Sequence[str]) -> tuple[AnswerStatus, str | None]:
    if tree.error in _STOPPED or (tree.interrupted and _was_interrupted(tree)):
        return "interrupted", None
    if tree.error in _LEFT or (tree.error is None and tree.streamed and _was_left_early(tree)):
        received, model = _received(tree), _speaker(tree)
        is_whole = False
        # A graph goes on with its model when its reader has left: the last token tells nothing then.
        if received is not None and model and model.last_chunk and (tree.streamed or not tree.delivered):
            is_last, notes = model.last_chunk
            is_whole = is_last or facts_of(notes).finish_reason is not None
        return ("complete" if is_whole else "aborted"), received
    if tree.error is not None:
        return "error", _received(tree)
    response = _Answers(tree, queries).response()
    return "complete", _streamed_by_the_graph(tree) if response is None else response


def _was_interrupted(tree: RequestTree) -> bool:
    """A graph stopped to wait for a person, and no model was called afterwards; its reader may have left at that point."""
    last = max((model.started_ns for model in tree.all_of(ModelStep)), default=0)
    ended = [step.ended_ns for step in tree.interrupted if step.error is None or step.error in _LEFT]
    return any(not 0 < ended_ns < last for ended_ns in ended)


def _was_left_early(tree: RequestTree) -> bool:
    """A stream that its reader closed ends without an error, but before the runs that feed it."""
    spoken = {step.reply.text for step in tree.answering_models if step.reply is not None and step.reply.text.strip()}
    fields = tree.output.values() if isinstance(tree.output, dict) else [tree.output]
    is_kept = any(text in spoken for text in fields if isinstance(text, str))
    return not is_kept and not all(step.ended_ns for step in tree.steps)


def _received(tree: RequestTree) -> str | None:
    """What a reader had received when the request ended too early; a caller who waited for the whole received nothing."""
    model = _speaker(tree) if tree.streamed or tree.delivered else None
    return None if model is None else "".join(map(content_text, model.tokens)) or None


def _speaker(tree: RequestTree) -> ModelStep | None:
    """The model whose tokens the reader was getting: the last one, unless a search came after it."""
    model = next((step for step in reversed(tree.all_of(ModelStep)) if not step.inside_search), None)
    if model is None or not model.ended_ns:
        return model
    return None if any(step.started_ns > model.ended_ns for step in tree.all_of(SearchStep)) else model


def _streamed_by_the_graph(tree: RequestTree) -> str | None:
    """The words of the last model, if the graph kept nothing of them: then they reached the caller by a stream of its own."""
    model = _speaker(tree)
    if model is None or model.reply is None or not isinstance(tree.output, dict):
        return None
    node = next((step for step in reversed(list(model.ancestors())) if step.parent is not None), None)  # the outermost
    is_kept = node is None or (node.output not in ({}, None, OPAQUE) and not model.tokens)
    return None if is_kept else model.reply.text.strip() or None


# The response


class _Answers:
    """Looks for the answer among the fields, messages and texts that a caller got."""

    def __init__(self, tree: RequestTree, queries: Sequence[str]) -> None:
        self._tree, self._queries = tree, queries
        self._replies = [step.reply for step in tree.answering_models if step.reply is not None]

    def response(self) -> str | None:
        """What the caller got as the answer; an object as JSON. Fields that were only passed through are not an answer."""
        inputs, output = self._tree.inputs, self._tree.output
        if isinstance(output, str):
            return output
        if isinstance(output, ObjectFields) or self._was_spoken(output):
            return as_json(output)
        if isinstance(output, (bool, int, float)):
            return json.dumps(output)
        if isinstance(output, list) and not all(isinstance(one, str) for one in output):
            is_tuple = not _holds_messages(output) and any(isinstance(one, str) and self._covers(one) for one in output)
            output = dict(zip(map(str, range(len(output))), output, strict=True)) if is_tuple else output
        if not isinstance(output, dict):
            return self._rendered(output)
        given = inputs if isinstance(inputs, dict) else {}
        own = {key: each for key, each in output.items() if each != inputs and (key not in given or given[key] != each)}
        return self._in_fields(own, is_talk=any(map(_holds_messages, output.values())))

    # What models said

    @cached_property
    def _whole(self) -> set[str]:
        return {normalise_spaces(text) for reply in self._replies if (text := reply.text).strip()}

    @cached_property
    def _fields(self) -> set[str]:
        objects = [part for reply in self._replies for part in (reply.arguments, json_in(reply.text))]
        return {normalise_spaces(field) for part in objects for field in texts_in(part)}

    def _has_said(self, text: str) -> bool:
        """Whether a model said exactly this, and not to search with it."""
        return text not in self._queries and normalise_spaces(text) in self._whole

    def _covers(self, text: str) -> bool:
        """Whether models said this as a whole, as a field of an object, or as parts that make up most of it."""
        even = normalise_spaces(text)
        if even in self._whole or even in self._fields:
            return True
        parts = [part for part in self._whole if has_words(part, 2) and part in even]
        is_excerpt = has_words(even, 2) and any(even in whole for whole in self._whole)
        return is_excerpt or 2 * sum(map(len, parts)) >= len(even) > 0

    def _was_spoken(self, output: Snapshot) -> bool:
        """Whether a model said exactly this object, as JSON or as the arguments of a tool call."""
        said = (each for reply in self._replies for each in (*reply.arguments, json_in(reply.text)))
        return isinstance(output, (dict, list)) and bool(output) and output in said

    # What the caller got

    def _rendered(self, value: Snapshot) -> str | None:
        """A value as the text of an answer; None if it is none.

        A conversation ends with an answer if that is the assistant's text, a tool's that replaces it, or a model's words under the
        role of a person, as supervisors hand on what their workers said. Without text it is what the assistant calls a tool with.
        """
        if isinstance(value, str):
            return value
        if isinstance(value, PayloadMessage):
            return value.text if value.text.strip() else value.calls_text
        if isinstance(value, list) and _holds_messages(value):
            last = [item for item in value if isinstance(item, PayloadMessage)][-1]
            if last.role == "human":
                return last.text if last.text != question_in(self._tree.inputs) and self._covers(last.text) else None
            if last.text.strip():
                return last.text if last.role in {"ai", "tool"} else None
            return last.calls_text
        if isinstance(value, list) and value and all(isinstance(item, str) for item in value):
            return "\n".join(value)
        return as_json(value) if isinstance(value, (dict, list)) else None

    def _in_fields(self, own: Mapping[str, Snapshot], *, is_talk: bool) -> str | None:
        """The answer among the fields of a state; in that of a conversation a single word such as `__end__` steers the graph."""
        for value in self._candidates(own):
            if not isinstance(value, str) or value.strip():
                is_data = isinstance(value, list) and not _holds_messages(value)
                response = as_json(value) if is_data else self._rendered(value)
                if response is not None:
                    return response
        rest = {
            key: value
            for key, value in own.items()
            if not _holds_messages(value) and _is_data(value)
            if not (is_talk and isinstance(value, str)) or has_words(value, 2)
        }
        texts = [value for value in rest.values() if isinstance(value, str)]
        if len(texts) == 1 and texts[0].strip():
            return texts[0]
        messages = [value for value in own.values() if isinstance(value, PayloadMessage)]
        return as_json(rest) or next((message.calls_text for message in messages), None)

    def _candidates(self, own: Mapping[str, Snapshot]) -> Iterator[Snapshot]:
        """What may be the answer, the likeliest first: by the names of fields and by what models said, then by deeper fields."""
        texts = {key: value for key, value in own.items() if isinstance(value, str)}
        named = [key for word in field_names.REPLYING for key in own if word in key.lower()]
        said = [key for key in named if key in texts and self._covers(texts[key])]
        answers = [own[key] for key in field_names.FINAL_ANSWER if key in own]
        yield from (json.dumps(each) if isinstance(each, (bool, int, float)) else each for each in answers)
        ends = [value[-1].text for value in own.values() if isinstance(value, list) and _holds_messages(value[-1:])]
        for key in said:  # a reply that was parsed is a part of the message that it came from
            is_parsed = has_words(texts[key], 2) and any(end.endswith(texts[key]) for end in ends)
            if is_parsed or _is_called(key, field_names.ANSWERING) or "final" in field_names.words_in_name(key):
                yield texts[key]
        for key in sorted(own, key=lambda key: key != "messages"):  # states may hold the messages of workers, too
            if _holds_messages(own[key]) and not (isinstance(own[key], PayloadMessage) and not own[key].text.strip()):
                yield own[key]
        yield from (own[key] for key in sorted(said, key=lambda key: not self._has_said(texts[key])))
        words = {key: field_names.words_in_name(key) for key, text in texts.items() if self._has_said(text)}
        answering = [key for key in words if not words[key] & _ON_THE_WAY]
        spoken = [texts[key] for key in answering or words]
        given = {call.said.strip(): [part.text for part in call.prompt] for call in self._tree.answering_models}
        prompts = [(one, part) for one in spoken for part in given.get(one.strip(), ())]
        earlier = {  # a draft stands in the prompt of the next; so does what a short text only judges
            one for one in spoken for own, part in prompts if own != one and 2 * len(own) >= len(one) and one in part
        }
        spoken = [one for one in spoken if one not in earlier] or spoken
        if len(spoken) > 1:
            yield from (text for text in texts.values() if all(part in text for part in spoken))
            yield from [] if named else [ObjectFields(own)]
        made = [] if spoken or named else list(filter(self._covers, texts.values()))
        yield from made if len(made) == 1 else spoken
        replying = {*field_names.ANSWERING, *field_names.REPLYING}
        yield from (texts[key] for key in named if key in texts and _is_called(key, replying))
        yield from self._deeper([value for value in own.values() if isinstance(value, dict)])
        yield from (own[key] for key in named if isinstance(own[key], (str, dict)))
        yield from self._deeper([value for value in own.values() if isinstance(value, list)])
        yield from (own[key] for key in named)

    def _deeper(self, fields: Sequence[Snapshot]) -> Iterator[Snapshot]:
        """Answers inside of fields; the whole field if it is an object that is the answer, or holds several replies."""
        for value in fields:
            is_object = isinstance(value, ObjectFields) or self._was_spoken(value)
            names = [key for key in field_names.FINAL_ANSWER if key in value] if isinstance(value, dict) else []
            yield from (value if is_object else value[key] for key in names)
        for value in (value for value in fields if not isinstance(value, ObjectFields)):
            spoken = list(filter(self._has_said, texts_in(value)))
            if spoken:
                yield spoken[0] if len(spoken) == 1 else value


def _is_called(key: str, names: Iterable[str]) -> bool:
    """Whether a field has one of these names, maybe with another word that does not change the meaning."""
    words = field_names.words_in_name(key) - _FILLERS
    return bool(words) and words <= set(names)


def _holds_messages(value: Snapshot) -> bool:
    return any(isinstance(item, PayloadMessage) for item in (value if isinstance(value, list) else [value]))


def _is_data(value: Snapshot) -> bool:
    if isinstance(value, list):
        return any(map(_is_data, value))
    return value is CUT or not isinstance(value, (Opaque, Document))
