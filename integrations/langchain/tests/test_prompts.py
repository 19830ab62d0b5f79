"""Which documents reached the prompt, and in which order, whatever the program does with them on the way."""

from __future__ import annotations

import pytest
from captures import Answered
from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableLambda, RunnablePassthrough
from rag_programs import (
    ANSWER,
    CASING,
    FILTER,
    FOUND,
    HOSE,
    MOTOR,
    PUMP,
    QUESTION,
    TopicRetriever,
    answer_chain,
    chat_model,
    documents,
    join_texts,
    rag_chain,
    retriever,
)

COMPLETE = Answered(QUESTION, FOUND, ANSWER)


# Selected, ordered, changed


def redacted(found):
    for document in found:
        document.page_content = "[redacted] " + document.page_content.split()[1]
    return join_texts(found)


def shortened(found):
    """New documents: they reach the prompt, the retrieved ones do not."""
    return documents(*(" ".join(document.page_content.split()[-4:]) for document in found))


COURSES = {
    "some in another order": (
        retriever(PUMP, FILTER, MOTOR, HOSE) | (lambda found: [found[2], found[0]]),
        join_texts,
        [MOTOR, PUMP],
    ),
    "none shown": (None, lambda found: f"{len(found)} documents", []),
    "the same text twice": (retriever(PUMP, HOSE, PUMP), join_texts, [PUMP, HOSE]),
    "rewritten in place": (None, redacted, ["[redacted] pump", "[redacted] are", "[redacted] motor"]),
    "replaced by summaries": (
        retriever() | RunnableLambda(shortened),
        join_texts,
        ["the date of purchase.", "dried in the shade.", "watts at full load."],
    ),
    "more added": (
        retriever(PUMP) | RunnableLambda(lambda found: [*found, *TopicRetriever().invoke("casing")]),
        join_texts,
        [PUMP, CASING],
    ),
}


@pytest.mark.parametrize(("source", "formatter", "contexts"), COURSES.values(), ids=COURSES)
def test_what_a_program_does_with_documents_on_the_way(captured, source, formatter, contexts):
    rag_chain(source, formatter=formatter).invoke(QUESTION, captured.config)

    assert captured.answers() == [Answered(QUESTION, contexts, ANSWER)]


# Where in the prompt


def test_documents_in_the_question_itself_are_the_users_words(captured):
    """The user quotes a passage that is found, but left out of the context."""
    question = f"Is this true? {MOTOR}"
    program = rag_chain(formatter=lambda found: join_texts(found[:1]))
    program.invoke(question, captured.config)

    assert captured.answers() == [Answered(question, [PUMP], ANSWER)]


# Documents that no search brought: the caller gives them, or a state holds them


def show(write):
    return RunnablePassthrough.assign(context=lambda fields: write(fields["context"])) | answer_chain()


SHOW = show(join_texts)
GIVEN = {
    "documents": (SHOW, documents(*FOUND), FOUND),
    "documents of which none is used": (
        RunnablePassthrough.assign(context=lambda fields: []) | SHOW,
        documents(PUMP),
        [],
    ),
    "dictionaries": (
        show(lambda found: "\n".join(each["page_content"] for each in found)),
        [{"page_content": text, "metadata": {"page": 3}, "type": "Document"} for text in FOUND],
        FOUND,
    ),
    "texts, which nothing tells from any other": (show("\n".join), FOUND, None),
}


@pytest.mark.parametrize(("program", "given", "contexts"), GIVEN.values(), ids=GIVEN)
@pytest.mark.parametrize("call", ["invoke", "stream"])
def test_documents_of_the_callers(captured, program, call, given, contexts):
    list(getattr(program, call)({"question": QUESTION, "context": given}, captured.config))

    assert captured.answers() == [Answered(QUESTION, contexts, ANSWER)]


def test_a_list_of_documents_and_a_question_apart(captured):
    """The chain is called with documents alone; the question is a part of the program."""
    program = RunnableLambda(lambda found: {"context": found, "question": QUESTION}) | SHOW
    program.invoke(documents(*FOUND), captured.config)

    answer = captured.answer()
    assert (answer.contexts, answer.response) == (FOUND, ANSWER)


# Documents that a model is given beside its messages


FORMS = {
    "documents": lambda found: found,
    "texts": lambda found: [each.page_content for each in found],
    "text": lambda found: [{"text": each.page_content} for each in found],
    "snippet": lambda found: [{"id": each.id, "title": "t", "snippet": each.page_content} for each in found],
    "data": lambda found: [{"id": each.id, "data": {"text": each.page_content, "page": 3}} for each in found],
    "page_content": lambda found: [each.model_dump() for each in found],
    "tuple": tuple,
}


def in_the_message(found):
    return chat_model().invoke([HumanMessage(QUESTION, additional_kwargs={"documents": found})])


def in_the_call(found):
    return chat_model().invoke(QUESTION, documents=found)


def bound_to_the_model(found):
    return chat_model().bind(documents=found).invoke(QUESTION)


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("ask", [in_the_message, in_the_call, bound_to_the_model])
def test_documents_of_any_form_reach_the_prompt(captured, ask, form):
    (retriever() | RunnableLambda(lambda found: ask(form(found)).text)).invoke(QUESTION, captured.config)

    assert captured.answers() == [COMPLETE]


def test_only_documents_that_were_handed_over_count(captured):
    (retriever() | RunnableLambda(lambda found: in_the_call(found[1:]).text)).invoke(QUESTION, captured.config)

    assert captured.answers() == [Answered(QUESTION, FOUND[1:], ANSWER)]


# Documents of classes of the program's own


class Refusing(dict):
    """Metadata that are read from somewhere at need, which fails."""

    def __iter__(self):
        raise RuntimeError("no connection")

    keys = __getitem__ = get = __len__ = __iter__


class OwnText(str):
    """A text that knows where it is from, as of an HTML parser."""

    __slots__ = ("parent",)

    def __len__(self):
        raise RuntimeError("no parent")

    casefold = find = __hash__ = __len__


@pytest.mark.parametrize(
    "form", [lambda page: page, lambda page: Refusing(page.__dict__)], ids=["document", "dictionary"]
)
def test_no_method_of_a_documents_text_or_metadata_is_called(captured, form):
    pages = documents(*FOUND)
    for page in pages:
        page.metadata, page.page_content = Refusing(page=3), OwnText(page.page_content)
    source = RunnableLambda(lambda _: [form(page) for page in pages])
    rag_chain(source, formatter=lambda _: "\n".join(FOUND)).invoke(QUESTION, captured.config)

    assert captured.answers() == [COMPLETE]
