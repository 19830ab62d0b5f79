"""The report of an evaluation, opened from the disk in a browser, on a desk and on a phone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from documentation_answers import answered_questions
from ragspan import RagRecord, RetrievedContext
from ragspan.evaluate import evaluate
from ragspan.evaluate.report import write_report
from ragspan.judges import OverlapJudge

METRICS = ("context_adherence", "completeness", "context_utilization", "faithfulness")
DESK, PHONE = {"width": 1440, "height": 1000}, {"width": 390, "height": 844}
HOSTILE = "</script><img src=x onerror='document.title=`hacked`'><script>document.title=`hacked`</script>\u202e"


@pytest.fixture(scope="module")
def evaluation():
    return evaluate(list(answered_questions()), METRICS, judge=OverlapJudge())


@pytest.fixture(scope="module")
def report(evaluation, tmp_path_factory) -> Path:
    file = tmp_path_factory.mktemp("report") / "report.html"
    write_report(evaluation, file, title="Answers about the documentation")
    return file


@pytest.fixture
def opened(screen):
    """Opens a report and checks at the end that the browser complained about nothing."""
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
    assert [url for url in requests if not url.startswith("file:")] == []
    assert len(requests) == 1


def shown_answers(page):
    return page.locator("details.answer:not([hidden])")


def choice(page, name):
    return page.locator(f"#filter [name={name}]")


def is_wider_than_the_screen(page):
    return page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth")


@pytest.mark.parametrize(("name", "size"), [("desk", DESK), ("phone", PHONE)])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_report_fits_the_screen_and_draws_its_plots(opened, report, name, size, scheme):
    screen = opened(report, size=size, scheme=scheme)

    assert screen.page.locator("figure svg.plot").count() == len(METRICS)
    assert screen.page.locator("article.card").count() == len(METRICS)
    assert not is_wider_than_the_screen(screen.page)
    screen.keep(f"report-{name}-{scheme}")
    shown_answers(screen.page).first.locator("summary").first.click()
    assert not is_wider_than_the_screen(screen.page)
    screen.keep(f"report-{name}-{scheme}-answer")


def test_the_plots_follow_the_theme(opened, report):
    page = opened(report).page
    bar = page.locator("figure svg.plot rect.pass").first
    light = bar.evaluate("bar => getComputedStyle(bar).fill")

    page.emulate_media(color_scheme="dark")

    assert bar.evaluate("bar => getComputedStyle(bar).fill") != light


def test_answers_are_filtered_by_metric_label_and_text(opened, report, evaluation):
    page = opened(report).page
    everything = shown_answers(page).count()
    failing = {row.row for row in evaluation.worst if getattr(row.outcomes["faithfulness"], "label", None) == "fail"}
    assert 0 < everything <= len(evaluation.worst)  # a response that several rows have is one answer

    choice(page, "metric").select_option("faithfulness")
    choice(page, "label").select_option("fail")
    rows = shown_answers(page).evaluate_all("answers => answers.map((answer) => Number(answer.dataset.row))")
    assert 0 < len(rows) < everything
    assert set(rows) <= failing
    assert page.locator("#found").inner_text() == f"{len(rows)} of {everything} answers"

    choice(page, "text").fill("professor LINDQVIST")
    assert 0 < shown_answers(page).count() <= len(rows)
    choice(page, "text").fill("no such words anywhere")
    assert shown_answers(page).count() == 0
    assert "none matches" in page.locator("#found").inner_text()

    page.get_by_role("button", name="Reset").click()
    page.wait_for_function(
        "count => document.querySelectorAll('details.answer:not([hidden])').length === count", arg=everything
    )


def test_answers_are_ordered_by_the_score_of_a_metric(opened, report):
    page = opened(report).page

    choice(page, "metric").select_option("completeness")
    choice(page, "order").select_option("lowest score")

    scores = shown_answers(page).evaluate_all(
        "answers => answers.map((answer) => JSON.parse(answer.dataset.scores).completeness[0])"
    )
    known = [score for score in scores if score is not None]
    assert known == sorted(known)
    assert scores[: len(known)] == known


def test_the_summary_is_sorted_by_a_column(opened, report):
    page = opened(report).page
    means = page.locator("#summary tbody td:nth-child(2)")

    page.locator("#summary").get_by_role("button", name="mean").click()
    rising = means.all_inner_texts()
    page.locator("#summary").get_by_role("button", name="mean").click()

    assert rising == sorted(rising)
    assert means.all_inner_texts() == rising[::-1]


def test_an_answer_is_reached_and_opened_with_the_keyboard(opened, report):
    page = opened(report).page

    choice(page, "text").focus()
    for _ in range(3):
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")

    assert page.locator("details.answer[open]").count() == 1
    assert page.evaluate("document.activeElement.matches('details.answer[open] > summary')")


def test_a_link_to_an_answer_opens_it(opened, report, evaluation):
    row = evaluation.worst[-1].row
    page = opened(report).page

    page.evaluate("row => { location.hash = `row-${row}`; }", row)

    page.wait_for_selector(f"details.answer[open] #row-{row}")


def test_text_that_would_be_a_script_is_shown_and_not_run(opened, tmp_path):
    record = RagRecord(
        question=HOSTILE,
        contexts=[RetrievedContext(text=HOSTILE, id=HOSTILE, source=HOSTILE)],
        response=f"A claim. {HOSTILE}",
        record_id=HOSTILE,
    )
    write_report(evaluate([record], METRICS, judge=OverlapJudge()), tmp_path / "report.html", title=HOSTILE)

    page = opened(tmp_path / "report.html").page
    page.locator("details.answer > summary").click()

    assert page.title() == HOSTILE.replace("\u202e", "[U+202E]")
    assert page.locator("img").count() == 0
    assert HOSTILE[:-1] in page.locator(".read .text").inner_text()


def test_even_a_script_that_got_in_would_not_run(opened, report, screen, tmp_path):
    """The policy holds where escaping should ever fail."""
    broken = tmp_path / "broken.html"
    injected = "<script>document.title = 'hacked'</script><img src='http://127.0.0.1:9/x'><main>"
    broken.write_text(report.read_text(encoding="utf-8").replace("<main>", injected), encoding="utf-8")
    page = screen.page.context.new_page()
    asked: list[str] = []
    page.on("requestfinished", lambda request: asked.append(request.url))

    page.goto(broken.as_uri())

    assert page.title() == "Answers about the documentation"
    assert asked == [broken.as_uri()]
    page.close()
    opened(report)


def test_without_scripts_everything_is_to_be_read(browser, report):
    context = browser.new_context(viewport=PHONE, java_script_enabled=False)
    page = context.new_page()
    page.goto(report.as_uri())

    assert page.locator("figure svg.plot").count() == len(METRICS)
    assert not page.locator("form#filter").is_visible()
    first = page.locator("details.answer").first
    first.locator("summary").first.click()
    assert first.locator(".said").is_visible()
    context.close()


def test_on_paper_it_is_light(opened, report):
    page = opened(report, scheme="dark").page
    colours = "() => ['body', 'mark'].map((name) => getComputedStyle(document.querySelector(name)).backgroundColor)"
    bar = "() => getComputedStyle(document.querySelector('figure svg.plot rect.pass')).fill"
    on_screen = page.evaluate(bar)

    page.emulate_media(media="print", color_scheme="dark")

    assert page.evaluate(colours) == ["rgb(255, 255, 255)", "rgb(253, 235, 225)"]
    assert page.evaluate(bar) != on_screen


def test_on_paper_answers_are_unfolded(opened, report):
    page = opened(report).page

    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.locator("details.answer:not([open])").count() == 0

    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.locator("details.answer[open]").count() == 0


def test_two_runs_side_by_side(opened, evaluation, tmp_path):
    before = [record for number, record in enumerate(answered_questions()) if number % 7]
    write_report(evaluation, tmp_path / "report.html", baseline=evaluate(before, METRICS, judge=OverlapJudge()))

    screen = opened(tmp_path / "report.html")

    assert "paired by record id" in screen.page.locator("#comparison").inner_text()
    assert screen.page.locator("#comparison td.change").all_inner_texts() == ["no clear difference"] * len(METRICS)
    screen.page.locator("#comparison").scroll_into_view_if_needed()
    screen.keep("report-comparison")


@pytest.mark.parametrize("size", [PHONE, {"width": 1280, "height": 900}], ids=["phone", "desk"])
def test_no_table_is_cut(opened, worse_than_before, size):
    page = opened(worse_than_before, size=size).page

    cut = page.locator(".scroll").evaluate_all("tables => tables.filter((t) => t.scrollWidth > t.clientWidth).length")
    assert page.locator(".scroll").count() > 2
    assert (cut, is_wider_than_the_screen(page)) == (0, False)


def test_newly_failing_links_to_the_answers(opened, worse_than_before):
    page = opened(worse_than_before).page

    page.locator("#comparison td[data-label='newly failing'] a").first.click()
    fall = page.locator(":target + p + .scroll tbody tr").first
    assert "pass → fail" in fall.inner_text()
    page.locator(":target + p + .scroll tbody a").first.click()  # only the worst answers are on the page

    page.wait_for_selector("details.answer[open]")


@pytest.fixture(scope="module")
def worse_than_before(evaluation, tmp_path_factory):
    """The report of a run in which every third answer became a wrong one."""
    file = tmp_path_factory.mktemp("worse") / "report.html"
    after = [
        record if number % 3 else replace(record, response="It was built by the Romans in 1789.")
        for number, record in enumerate(answered_questions())
    ]
    write_report(evaluate(after, METRICS, judge=OverlapJudge()), file, baseline=evaluation)
    return file


def test_the_pictures_of_the_documentation(opened, report):
    """`pytest e2e/test_report.py --pictures docs/images` renews them."""
    screen = opened(report, size={"width": 1200, "height": 900})
    screen.picture("report")

    half_good = screen.page.locator("details.answer:has(.claims .supported):has(mark):has(.contexts .useful)").first
    half_good.locator("summary").first.click()
    place = half_good.evaluate(
        """answer => {
            const { x, y, width, height } = answer.getBoundingClientRect();
            return { x: x + scrollX - 12, y: y + scrollY - 12, width: width + 24, height: Math.min(height + 24, 440) };
        }"""
    )
    screen.picture("report-answer", clip=place, full_page=True)
