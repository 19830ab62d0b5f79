"""Nothing of the program's runs because a handler listens, whatever its objects are made of."""

from __future__ import annotations

import asyncio
import warnings
from collections import Counter

import pytest
from counted_objects import RUNS, hostile_objects
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda
from rag_programs import QUESTION
from sqlalchemy import ForeignKey, create_engine, event
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, MappedAsDataclass, Session, mapped_column, relationship

import ragspan


class LazyDocument(Document):
    """Keeps its text elsewhere."""

    def __getattribute__(self, name):
        if name in {"page_content", "metadata", "id"}:
            RUNS[f"LazyDocument.{name}"] += 1
        return super().__getattribute__(name)


class Finds(BaseRetriever):
    found: list[Document]

    def _get_relevant_documents(self, query, *, run_manager):
        return self.found


def program(value):
    documents = [
        Document(page_content="The pump is blue.", metadata={"value": value, "page": 1}),
        LazyDocument(page_content="The pump is old.", metadata={"value": value}),
    ]
    beside = [value, [value], {"inner": value}, {1: value}, (value,)]
    return (
        RunnableLambda(
            lambda given: {**given, "found": Finds(found=documents, metadata={"value": value}).invoke(QUESTION)}
        )
        | RunnableLambda(lambda state: {"state": state, "beside": beside})
        | RunnableLambda(
            lambda state: {
                "answer": "It is blue.",
                "messages": [
                    HumanMessage(QUESTION),
                    ToolMessage("4", tool_call_id="1", artifact=value),
                    AIMessage("Yes."),
                ],
                "state": state,
            }
        )
    )


def runs_of(program, given, config):
    RUNS.clear()
    program.invoke(given, config)
    return Counter(RUNS)


@pytest.mark.parametrize("name", hostile_objects())
def test_no_attribute_or_operator_of_an_object_runs(captured, name):
    value = hostile_objects()[name]
    given = {"question": QUESTION, "value": value, "list": [value, value]}
    config = {"metadata": {"value": 1}, "tags": ["a tag"]}
    alone = runs_of(program(value), given, config)

    assert runs_of(program(value), given, {**config, **captured.config}) == alone
    RUNS.clear()
    record = captured.records()[-1]
    assert record.question == QUESTION
    assert not RUNS
    assert record.retrievals[0].contexts[0].metadata["page"] == 1


@pytest.mark.parametrize("name", hostile_objects())
def test_what_the_program_hands_over_is_read_and_not_run(captured, name):
    value = hostile_objects()[name]
    RUNS.clear()
    with ragspan.capture(QUESTION, sink=captured.sink, metadata={"value": value}, tags=[value]) as answer:
        ragspan.record_contexts([value, {"text": "The pump is blue.", "metadata": {"value": value}}])
        answer.contexts = value
        answer.response = "It is blue."
    record = captured.sink.take()[-1].to_record()

    assert RUNS.keys() <= {"numbers"}  # a generator that is handed over is there to be read
    assert "The pump is blue." in [context.text for context in record.contexts]


def test_an_error_is_noted_without_the_code_of_its_class(captured):
    class Refused(Exception):
        def __str__(self):
            RUNS["Refused.__str__"] += 1
            return "loaded"

    def fail(_):
        raise Refused("the pump", hostile_objects()["everything"])

    RUNS.clear()
    with pytest.raises(Refused):
        RunnableLambda(fail).invoke({"question": QUESTION}, captured.config)

    assert captured.records()[-1].error.message == "the pump"
    assert not RUNS


# A real one: rows of SQLAlchemy, whose attributes load themselves


class Base(MappedAsDataclass, DeclarativeBase):
    pass


class Order(Base):
    __tablename__ = "orders"
    id: Mapped[int] = mapped_column(primary_key=True, init=False)
    customer: Mapped[int] = mapped_column(ForeignKey("customers.id"), init=False)


class Customer(Base):
    __tablename__ = "customers"
    id: Mapped[int] = mapped_column(primary_key=True, init=False)
    name: Mapped[str] = mapped_column()
    note: Mapped[str] = mapped_column(deferred=True)
    orders: Mapped[list[Order]] = relationship(default_factory=list)


def customer():
    return Customer(name="Ann", note="private", orders=[Order() for _ in range(5)])


def test_rows_of_a_database_are_not_loaded(captured):
    engine, statements = create_engine("sqlite://"), []
    Base.metadata.create_all(engine)
    with Session(engine) as session:
        session.add(customer())
        session.commit()
    event.listen(engine, "before_cursor_execute", lambda *about: statements.append(about[2]))
    with Session(engine) as session:
        row = session.get(Customer, 1)
        row.name = "Beth"
        statements.clear()
        chain = program(row)
        chain.invoke({"question": QUESTION, "row": row, "rows": [row]}, captured.config)
        session.expire(row)
        chain.invoke({"question": QUESTION, "row": row}, captured.config)
        session.expunge(row)
        chain.invoke({"question": QUESTION, "row": row}, captured.config)
        assert statements == []
        assert [record.question for record in captured.records()] == [QUESTION] * 3
        assert statements == []
    engine.dispose()


def test_rows_of_an_asynchronous_session_are_not_loaded(captured):
    async def run():
        engine, statements = create_async_engine("sqlite+aiosqlite://"), []
        async with engine.begin() as connection:
            await connection.run_sync(Base.metadata.create_all)
        async with AsyncSession(engine) as session:
            session.add(customer())
            await session.commit()
        event.listen(engine.sync_engine, "before_cursor_execute", lambda *about: statements.append(about[2]))
        async with AsyncSession(engine) as session:
            row = await session.get(Customer, 1)
            statements.clear()
            await program(row).ainvoke({"question": QUESTION, "row": row}, captured.config)
            assert statements == []
            assert (await session.get(Customer, 1)).name == "Ann"
            await session.commit()
        await engine.dispose()

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        asyncio.run(run())
    assert captured.records()[-1].question == QUESTION
