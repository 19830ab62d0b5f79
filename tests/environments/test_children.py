"""`ragspan run` reaches the Python interpreters that its program starts, whoever starts them, and changes nothing else in them."""

from __future__ import annotations

from pathlib import Path

import pytest
from programs import Program

pytestmark = pytest.mark.slow

ANSWER = """
import sys
from langchain_core.documents import Document
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableLambda, RunnablePassthrough

FACT = "Beta settles card payments after midnight."

def answer(name):
    search = RunnableLambda(lambda _: [Document(FACT)])
    prompt = ChatPromptTemplate.from_template("Context: {context} Question: {question}")
    chain = {"context": search, "question": RunnablePassthrough()} | prompt | FakeListChatModel(responses=[FACT])
    chain.with_config(run_name=name).invoke("When are card payments settled?")

if __name__ == "__main__":
    answer(sys.argv[1])
"""
START = "import subprocess, sys; subprocess.run([sys.executable, *{arguments!r}], check=True)"


@pytest.fixture
def run(otlp_listener, tmp_path: Path):
    """Runs a program with `ragspan run`, in a folder that has `answer.py`; returns the program when it has ended."""
    (tmp_path / "answer.py").write_text(ANSWER, encoding="utf-8")
    started = []

    def run_program(text, *options, **environment):
        (tmp_path / "parent.py").write_text(text, encoding="utf-8")
        program = Program(
            *(*options, "-m", "ragspan.cli", "run", "-q", "parent.py"),
            folder=tmp_path,
            environment={"OTEL_EXPORTER_OTLP_ENDPOINT": otlp_listener.url, "RAGSPAN_EXIT_TIMEOUT": "60", **environment},
        )
        started.append(program)
        assert program.wait() == 0, program.output
        return program

    yield run_program
    for program in started:
        program.close()


@pytest.fixture
def scored(scores):
    """The names of the answers that have a score."""
    return lambda: sorted(name for name, score in scores().items() if score is not None)


@pytest.mark.parametrize(
    "arguments",
    [["answer.py", "child"], ["-c", "import answer; answer.answer('child')"]],
    ids=["script", "command"],
)
def test_a_python_that_the_program_starts_is_scored(run, scored, arguments):
    program = run(START.format(arguments=arguments) + "\nimport answer; answer.answer('parent')")

    assert scored() == ["child", "parent"]
    assert program.output == []


def test_a_child_that_answers_nothing_imports_nothing_of_ours(run):
    show = (
        "import sys; print(sorted(name for name in sys.modules if name.split('.')[0] in ('ragspan', 'opentelemetry')))"
    )
    program = run(START.format(arguments=["-c", show]))

    assert program.output == ["[]"]


def test_a_child_has_the_search_path_and_the_sitecustomize_that_it_would_have(run, scored, tmp_path):
    own = tmp_path / "own"
    own.mkdir()
    (own / "sitecustomize.py").write_text("import os; print('own', os.path.basename(__file__))", encoding="utf-8")
    show = "import os, sys, sitecustomize, answer; print(sitecustomize.__file__, sys.path[1]); answer.answer('child')"
    program = run(START.format(arguments=["-c", show]), PYTHONPATH=str(own))

    assert program.output == [*["own sitecustomize.py"] * 2, f"{own / 'sitecustomize.py'} {own}"]
    assert scored() == ["child"]


def test_a_child_whose_settings_are_wrong_says_so_in_one_line_and_goes_on(run, scored):
    start = START.format(arguments=["-c", "import answer; answer.answer('child'); print('done')"])
    program = run("import os; os.environ['RAGSPAN_METRICS'] = 'faithfullness'\n" + start)

    assert len(program.output) == 2, program.output
    assert "the answers of process" in program.output[0]
    assert "RAGSPAN_METRICS" in program.output[0]
    assert program.output[1] == "done"
