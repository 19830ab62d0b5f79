"""The report of an evaluation, opened from the disk in a browser, on a desk and on a phone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from documentation_answers import answered_questions
from ragspan import RagRecord, RetrievedContext, Score
from ragspan.evaluate import EvaluatedRow, Evaluation, evaluate
from ragspan.evaluate.report import write_report
from ragspan.judges import OverlapJudge

METRICS = ("context_adherence", "completeness", "context_utilization", "faithfulness")
DESK, PHONE = {"width": 1440, "height": 1000}, {"width": 390, "height": 844}
HOSTILE = "</script><img src=x onerror='document.title=`hacked`'><script>document.title=`hacked`</script>\u202e"


@pytest.fixture(scope="module")
def evaluation():
    rows = [replace(record, metadata={"model": f"m{number % 3}"}) for number, record in enumerate(answered_questions())]
    answers = evaluate(rows, METRICS, judge=OverlapJudge(), by="model")
    answers.source = "answers about the documentation"
    return answers


@pytest.fixture(scope="module")
def report(evaluation, tmp_path_factory) -> Path:
    file = tmp_path_factory.mktemp("report") / "report.html"
    write_report(evaluation, file)
    return file


@pytest.fixture
def opened(screen):
    """Opens a report and checks at the end that the browser complained about nothing and asked for nothing."""
    complaints: list[str] = []
    screen.page.on("console", lambda message: complaints.append(message.text))
    screen.page.on("pageerror", lambda error: complaints.append(str(error)))
    requests: list[str] = []
    screen.page.on("request", lambda request: requests.append(request.url))

    def open_report(file: Path, *, size=DESK, scheme="light"):
        screen.page.set_viewport_size(size)
        screen.page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        screen.page.goto(file.as_uri())
        return screen

    yield open_report
    assert complaints == []
    assert len(requests) == 1


def shown_rows(page):
    return page.locator("details.answer").evaluate_all("answers => answers.map((one) => Number(one.dataset.row))")


def choice(page, name):
    return page.locator(f"#filter [name={name}]")


@pytest.mark.parametrize(("name", "size"), [("desk", DESK), ("phone", PHONE)])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_report_fits_the_screen_and_draws_its_plots(opened, report, name, size, scheme):
    screen = opened(report, size=size, scheme=scheme)

    assert screen.page.locator("article.card svg.plot").count() == len(METRICS)
    screen.keep(f"report-{name}-{scheme}")
    for summary in screen.page.locator("details.answer summary").all():
        summary.click()
    assert screen.page.locator("details.answer[open] mark").count() > 0
    is_wider = "document.documentElement.scrollWidth > document.documentElement.clientWidth"
    assert not screen.page.evaluate(is_wider)
    screen.keep(f"report-{name}-{scheme}-answer")


def test_failing_answers_are_chosen_by_a_column_and_by_text_and_paged(opened, report, evaluation):
    page = opened(report).page
    failing = {row.row: row for row in evaluation.all_rows() if row.failing}
    assert len(shown_rows(page)) == min(25, len(failing))

    choice(page, "column").select_option("model")
    choice(page, "value").select_option("m1")
    of_model = {number for number, row in failing.items() if row.record.metadata["model"] == "m1"}
    assert set(shown_rows(page)) <= of_model
    assert f"of {len(of_model)} answers" in page.locator("#found").inner_text()

    choice(page, "column").select_option("")
    choice(page, "text").fill("fleet and the RECEIVER")
    assert 0 < len(shown_rows(page)) < len(failing)
    choice(page, "text").fill("no such words anywhere")
    assert (shown_rows(page), page.locator("#found").inner_text()) == ([], "none matches")

    choice(page, "text").fill("")
    first = shown_rows(page)
    if len(failing) > len(first):
        page.get_by_role("button", name="Later").click()
        assert not set(shown_rows(page)) & set(first)


def test_answers_without_a_label_are_chosen_by_the_filter(opened, tmp_path):
    values = [Score(value=0.1, threshold=0.5), Score(value=0.9, threshold=0.5), Score(value=0.45)]
    rows = [
        EvaluatedRow(row=row, record=RagRecord(question="q", contexts=["c"], response="r"), outcomes={"a": value})
        for row, value in enumerate(values, 1)
    ]
    evaluation = Evaluation(metrics=("a",), all_rows=lambda: iter(rows))
    for row in rows:
        evaluation.add(row)
    write_report(evaluation, tmp_path / "report.html")
    page = opened(tmp_path / "report.html").page

    assert shown_rows(page) == [1]
    choice(page, "column").select_option(label="without a label or score")
    assert shown_rows(page) == [3]
    assert choice(page, "value").locator("option").all_inner_texts() == ["any", "a (1)"]


def test_a_table_is_sorted_by_a_column(opened, report):
    page = opened(report).page
    means = page.locator("#summary tbody td:nth-child(2)")

    page.locator("#summary").get_by_role("button", name="mean").click()
    rising = means.all_inner_texts()
    page.locator("#summary").get_by_role("button", name="mean").click()

    assert rising == sorted(rising)
    assert means.all_inner_texts() == rising[::-1]


def test_text_that_would_be_a_script_is_shown_and_not_run(opened, tmp_path):
    context = RetrievedContext(text=HOSTILE, id=HOSTILE, source=HOSTILE)
    record = RagRecord(question=HOSTILE, contexts=[context], response=f"A claim. {HOSTILE}", record_id=HOSTILE)
    hostile = evaluate([record], METRICS, judge=OverlapJudge())
    hostile.source = HOSTILE
    write_report(hostile, tmp_path / "report.html")

    page = opened(tmp_path / "report.html").page
    page.locator("details.answer > summary").first.click()

    assert page.title() == f"RAG evaluation of {HOSTILE[:-1]}\ufffd"
    assert page.locator("img").count() == 0
    assert HOSTILE[:-1] in page.locator(".contexts .text").inner_text()


def test_two_runs_side_by_side(opened, evaluation, tmp_path):
    after = [
        record if number % 3 else replace(record, response="It was built by the Romans in 1789.")
        for number, record in enumerate(answered_questions())
    ]
    worse = evaluate(after, METRICS, judge=OverlapJudge())
    write_report(worse, tmp_path / "report.html", baseline=evaluation)
    screen = opened(tmp_path / "report.html")
    shown = screen.page.locator("#comparison").inner_text()

    assert "paired by record id" in shown
    assert screen.page.locator("#comparison b.worse").count() > 0
    assert "pass → fail" in shown
    screen.keep("report-comparison")


def test_the_pictures_of_the_documentation(opened, report):
    """`pytest e2e/test_report.py --pictures docs/images` renews them."""
    screen = opened(report, size={"width": 1200, "height": 900})
    screen.picture("report")

    for answer in screen.page.locator("details.answer").all():
        answer.locator("summary").first.click()
        if answer.locator("mark.supported").count() and answer.locator("mark.unsupported").count():
            break
        answer.locator("summary").first.click()
    place = answer.evaluate(
        """answer => {
            const { x, y, width, height } = answer.getBoundingClientRect();
            return { x: x + scrollX - 12, y: y + scrollY - 12, width: width + 24, height: Math.min(height + 24, 440) };
        }"""
    )
    screen.picture("report-answer", clip=place, full_page=True)
