"""Which contexts an answer rests on: the nodes of the synthesizer that wrote it, else those in the model's prompt.

A model's own earlier words in a prompt hold no contexts, but they may be a draft that rests on some. Runs in the worker.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

from ragspan.matching import PromptText, words_of
from ragspan.records import RetrievedContext
from ragspan_llama_index.objects import SPEAKING
from ragspan_llama_index.steps import SeenNode, Step, as_context, ranks_in

Contexts = list[RetrievedContext]


class Provenance:
    """Where the answer of a request comes from.

    Args:
        root: the request's outermost step.
        question: the user's own words, which are no context even if they quote one.
    """

    def __init__(self, root: Step, question: str | None) -> None:
        self._root = root
        self._question = question or ""
        self._ranks = ranks_in(root)

    def contexts(self) -> tuple[RetrievedContext, ...] | None:
        """The contexts in prompt order; `()` when none reached the model, None when they could not be observed."""
        found = self._of(self._root, self._root)
        known = {known for context in found or () for known in (context.text, context.id)}
        named = [context for step in self._root.walk() for context in step.recorded]
        recorded = [context for context in named if known.isdisjoint({context.text, context.id} - {None})]
        return None if found is None and not recorded else (*(found or ()), *recorded)

    def evidence(self) -> tuple[RetrievedContext, ...]:
        """The contexts behind contexts that were themselves answers."""
        return tuple(_once(self._evidence(self._root)))

    def _of(self, step: Step, around: Step) -> Contexts | None:
        if step.role == "synthesis":
            return self._given(_innermost(step))
        if step.role == "model":
            tools = [inner for inner in step.walk() if inner.role == "tool"]
            told = _joined(self._of(tool, step) if tool.found is None else self._brought_by(tool) for tool in tools)
            if told is not None:
                return told
            # A tool that brings nothing only makes an object of what the model says.
            if tools or not is_composite(step):
                return self._prompted(step) if prompts_of(step) else self._brought(around)
        writers = [] if step.role is None else writers_of(step)
        if len(writers) > 1:
            return _joined(self._of(writer, step) for writer in writers)
        return self._of(writers[0], step) if writers else self._brought(step)

    def _prompted(self, model: Step) -> Contexts | None:
        """The contexts in the prompt of a model and in those behind it; None if no search was observed."""
        models, told = behind(model, self._root)
        prompt = given_to(models)
        passages = self._passages(prompts_of(model)[-1].started_ns)
        texts = [passage.own for passage in passages]
        looked_through = PromptText(prompt, apart=self._question)
        places = looked_through.find([*texts, *(step.answer_text() or "" for step in told)])
        if not looked_through.is_complete:  # a part of the contexts would make true answers look made up
            return None
        parts: list[tuple[int, Contexts]] = []
        free = {text: prompt.count(text) for text, number in Counter(texts).items() if number > 1}
        for passage, match in zip(passages, places[: len(passages)], strict=True):
            if match is None or free.get(passage.own) == 0:
                continue
            if passage.own in free:
                free[passage.own] -= 1
            text = passage.as_in(prompt, match.start)
            parts.append((match.start, [self._context(passage.node, text, truncated=not match.whole)]))
        brought = [self._of(step, step) for step in told]
        for contexts, match in zip(brought, places[len(passages) :], strict=True):
            parts.append((len(prompt) if match is None else match.start, contexts or []))
        parts.sort(key=lambda part: part[0])
        seen = any(contexts is not None for contexts in brought) or any(map(_shows_nodes, self._root.walk()))
        return _once(context for _, contexts in parts for context in contexts) if seen else None

    def _passages(self, before_ns: int) -> list[Passage]:
        """The nodes that were seen before a moment, each once."""
        passages: dict[tuple[str | None, str], Passage] = {}
        for step in self._root.walk():
            nodes, since_ns = step.found or (), step.ended_ns or before_ns + 1
            texts: Sequence[str | None] = ()
            if step.role == "call":
                nodes, since_ns = step.given, 0  # the program names them when it is done
            elif step.role == "synthesis":
                nodes, since_ns, texts = step.given, step.started_ns, step.texts or ()
            if since_ns > before_ns:
                continue
            for place, node in enumerate(nodes):
                key = (node.id, node.text)
                written = texts[place] if len(texts) == len(nodes) else None
                if not node.describes_tool() and (written or node.is_final or key not in passages):
                    passages[key] = Passage(node, written or node.text_for_model())
        return list(passages.values())

    def _brought(self, step: Step) -> Contexts | None:
        """What all searches inside a step brought, in their order; None when no search was observed."""
        asked = [child for child in step.children if child.role == "model" and prompts_of(child)]
        if step.role is None and asked:  # a block of the program's, and its last model tells what it was given
            others = [child for child in step.children if child.role in {"call", "synthesis", None}]
            return _joined([*map(self._brought_by, others), self._prompted(asked[-1])])
        parts = [self._brought_by(child) for child in step.children]
        if step.given:  # the program says what it found, and no search was seen
            parts.append([self._context(node, node.text_for_model()) for node in step.given])
        return _joined(parts)

    def _brought_by(self, step: Step) -> Contexts | None:
        if step.role in {"call", "synthesis"}:
            return self._of(step, step)
        if step.role is None:
            return list(step.recorded)
        if step.found is None:
            return self._brought(step) if step.role in {"tool", "model"} else None
        passages = [] if step.superseded else [node for node in step.found if not node.describes_tool()]
        return [self._context(node, node.text_for_model()) for node in passages] if _shows_nodes(step) else None

    def _given(self, step: Step) -> Contexts:
        texts = step.texts
        if step.has_base("Generation"):
            return []  # it asks the model the bare question
        if texts is None:
            return [self._context(node, node.text_for_model()) for node in step.given]
        prompt = given_to([step]) if step.has_base("SimpleSummarize") else ""
        shown = list(shown_beginnings(texts, prompt)) if prompt else [(text, False) for text in texts]
        if len(texts) == len(step.given):
            pairs = zip(step.given, shown, strict=False)  # what is cut off is cut off at the end
            return [self._context(node, text, truncated=is_cut) for node, (text, is_cut) in pairs]
        return [RetrievedContext(text=text, truncated=is_cut) for text, is_cut in shown]

    def _context(self, node: SeenNode, text: str, *, truncated: bool = False) -> RetrievedContext:
        return as_context(node, text, rank=self._ranks.get(node.id), truncated=truncated)

    def _evidence(self, step: Step) -> Contexts:
        if step.role == "synthesis":
            return []
        writers = [] if step.role is None else writers_of(step)
        if not writers or any(writer.role == "model" for writer in writers):
            return [leaf for call in _calls(step.children) for leaf in self._evidence(call)]
        leaves: Contexts = []
        for writer in writers:
            leaves += self._evidence(writer)
            if writer.role == "synthesis":
                leaves += self._behind(self._of(writer, step) or [], step.children, writer.started_ns)
        return leaves

    def _behind(self, contexts: Sequence[RetrievedContext], steps: Iterable[Step], before_ns: int) -> Contexts:
        """The evidence of the steps whose answers are among these contexts."""
        texts = _Texts(contexts)
        leaves: Contexts = []
        for step in steps:
            own = self._of(step, step) or [] if 0 < step.ended_ns <= before_ns and texts.hold_answer_of(step) else []
            known = {context.text for context in own}
            # A step's own context that happens to hold its answer was not made from it.
            others = [context for context in contexts if context.text not in known] if own else []
            if others and (len(others) == len(contexts) or _Texts(others).hold_answer_of(step)):
                leaves += self._evidence(step) or own
            else:
                leaves += self._behind(contexts, step.children, before_ns) if step.children else []
        return leaves


class _Texts:
    """The texts of contexts, among which answers are looked for."""

    def __init__(self, contexts: Iterable[RetrievedContext]) -> None:
        texts = [context.text for context in contexts]
        self._whole = {text.strip() for text in texts}
        self._joined = "\0".join(texts)

    def hold_answer_of(self, step: Step) -> bool:
        if step.role not in SPEAKING:
            return False
        answer = (step.answer_text() or "").strip()
        if answer in self._whole:
            return bool(answer) or step.role == "model"
        # A model's word, such as a grade, stands anywhere.
        return bool(answer) and (step.role != "model" or " " in answer) and answer in self._joined


def _innermost(synthesis: Step) -> Step:
    """The synthesis that a program's own one handed its work to, and whose answer it gave."""
    if synthesis.origin is not None and synthesis.origin.role == "synthesis":
        return _innermost(synthesis.origin)
    return synthesis


def _shows_nodes(step: Step) -> bool:
    """Whether it searched for contexts, and not for tools, or was given some."""
    if step.found is None:
        return bool(step.given)
    return not step.found or not all(node.describes_tool() for node in step.found)


def _calls(steps: Iterable[Step]) -> Iterator[Step]:
    """The calls among these steps and inside their searches and tools."""
    for step in steps:
        if step.role == "call":
            yield step
        else:
            yield from _calls(step.children)


def _joined(parts: Iterable[Contexts | None]) -> Contexts | None:
    found = [part for part in parts if part is not None]
    return _once(context for part in found for context in part) if found else None


def _once(contexts: Iterable[RetrievedContext]) -> Contexts:
    """Each context once, where it came first. Contexts may share an id: the parts that an engine cuts a node into."""
    found: dict[tuple[str | None, str], RetrievedContext] = {}
    for context in contexts:
        found.setdefault((context.id, context.text), context)
    return list(found.values())


# What stands in the prompts behind an answer

_ASSISTANT = "assistant"
_LOOKED_AT = 500  # characters that tell whether there is a second word
_SPEAKING = frozenset({"call", "synthesis", "model", "tool"})
_CLOSED = frozenset({"search", "postprocessing", "synthesis"})
"""What models say inside of these is not used outside."""


class Passage:
    """A node that may stand in a prompt: as the framework writes it, with metadata, or its own text alone."""

    def __init__(self, node: SeenNode, text: str) -> None:
        self.node = node
        self.text = text
        self.own = node.text if node.text.strip() and node.text in text else text

    def as_in(self, prompt: str, place: int) -> str:
        """Its text as it stands in a prompt that holds its own text, probably at this place."""
        near = slice(max(0, place - len(self.text)), place + len(self.text))
        return self.text if self.text in prompt[near] or self.text in prompt else self.own


def is_composite(model: Step) -> bool:
    """Whether a model's method used tools or engines of the program for its answer."""
    return any(inner.role != "model" for inner in model.walk())


def prompts_of(model: Step) -> list[Step]:
    """The calls behind a model's method that show what the model was given."""
    return [inner for inner in model.walk() if inner.prompt]


def behind(model: Step, root: Step) -> tuple[list[Step], list[Step]]:
    """All models behind this one, in order of time, and the other steps whose words are in their prompts.

    An earlier model is behind a later one if its words are in that one's prompt: a partial answer, notes, a draft. Words that
    were only searched with do not count, nor does a single word, such as a grade.
    """
    queries = {text for step in root.walk() if step.role == "search" for _, text in step.asked}
    waiting = [model]
    known = {id(model)}
    read: set[str] = set()
    found: list[Step] = []
    told: list[Step] = []
    while waiting:
        model = waiting.pop()
        found.append(model)
        for call in prompts_of(model):
            parts = [text for _, text in call.prompt if text not in read]
            read.update(parts)
            said = [step for step in _said_before(root, call.started_ns) if _tells(step, parts, queries)]
            if not parts or not said:
                continue
            places = PromptText("\n".join(parts)).find(
                [step.answer_text() or "" for step in said], excerpts=len(found) == 1
            )
            quoted = [step for step, place in zip(said, places, strict=True) if place is not None]
            inner = {id(below) for step in quoted for below in step.walk() if below is not step}
            for step in quoted:
                if id(step) not in known and id(step) not in inner:
                    known.add(id(step))
                    (waiting if step.role == "model" and not is_composite(step) else told).append(step)
    return sorted(found, key=lambda step: step.started_ns), told


def given_to(models: Iterable[Step]) -> str:
    """What these models were given, each text once."""
    calls = (call for model in models for call in prompts_of(model))
    return "\n".join({text: None for call in calls for role, text in call.prompt if role != _ASSISTANT})


def _said_before(root: Step, moment_ns: int) -> Iterator[Step]:
    for child in root.children:
        if child.role in _SPEAKING and 0 < child.ended_ns <= moment_ns:
            yield child
        if child.role not in _CLOSED:
            yield from _said_before(child, moment_ns)


def _tells(step: Step, parts: Iterable[str], queries: Collection[str]) -> bool:
    """Whether a step's words can be recognised in a prompt."""
    said = (step.answer_text() or "").strip()
    if not said or (step.role == "tool" and not any(speakers_in(step))):
        return False
    if step.role != "model":
        return True
    return said not in queries and (
        len(words_of(said[:_LOOKED_AT])[0]) > 1 or any(said in part.splitlines() for part in parts)
    )


def shown_beginnings(texts: Sequence[str], prompt: str) -> Iterator[tuple[str, bool]]:
    """What a prompt shows of texts that were joined and cut off at the end: each text, and whether it was cut."""
    spelled = [words_of(text)[0] for text in texts]
    left = _shown([word for words in spelled for word in words], words_of(prompt)[0])
    for text, words in zip(texts, spelled, strict=True):
        if left <= 0:
            return
        yield (text, False) if len(words) <= left else (_beginning(text, left), True)
        left -= len(words)


def _shown(words: Sequence[str], prompt: Sequence[str]) -> int:
    """How many words of a text's beginning stand in a prompt."""
    held = f" {' '.join(prompt)} "
    return _most(len(words), lambda count: f" {' '.join(words[:count])} " in held)


def _beginning(text: str, words: int) -> str:
    """The beginning of a text that has so many words."""
    return text[: _most(len(text), lambda length: len(words_of(text[:length])[0]) <= words)].rstrip()


def _most(most: int, fits: Callable[[int], bool]) -> int:
    """The largest number up to `most` that fits, where all smaller ones do."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(middle) else (low, middle - 1)
    return low


# Which inner steps wrote an answer

_word = re.compile(r"\w+")


def writers_of(step: Step) -> list[Step]:
    """The inner step whose result or words a call returned, or the several whose words make up its answer.

    The streamed words of some models are not reported: such a model wrote what no other step said.
    """
    if step.origin is not None:
        return [step.origin]
    speakers = list(speakers_in(step))
    answer = bare(step.answer_text())
    if not speakers or not answer:
        return speakers[-1:]
    same = [speaker for speaker in speakers if _said(speaker, answer)]
    if same:
        return same[-1:]
    parts = [speaker for speaker in speakers if _is_part(speaker, answer)]
    unheard = [speaker for speaker in speakers if speaker.streams and not speaker.answer_text()]
    if unheard and 2 * sum(len(bare(part.answer_text())) for part in parts) < len(answer):
        return unheard[-1:]
    return parts or speakers[-1:]


def bare(text: str | None) -> str:
    """The words of a text, without case and punctuation."""
    return " ".join(_word.findall((text or "").casefold()))


def speakers_in(step: Step) -> Iterator[Step]:
    """The inner steps that may have written the answer, in the order in which they began."""
    for child in step.children:
        if child.role in SPEAKING:
            yield child
        elif child.role == "tool":
            yield from speakers_in(child)


def _said(speaker: Step, answer: str) -> bool:
    said = bare(speaker.answer_text())
    return answer in said if speaker.role == "model" else answer == said


def _is_part(speaker: Step, answer: str) -> bool:
    """Whether its words stand in the answer. A single word of a model, a grade or a choice, stands anywhere."""
    said = bare(speaker.answer_text())
    return said in answer and (" " in said or (bool(said) and speaker.role != "model"))
