from __future__ import annotations

import asyncio
import pickle
import threading

import pytest

from ragspan.exceptions import BudgetExhausted, JudgeError
from ragspan.judges.llm.once import Once
from ragspan.judges.usage import metered, report_usage
from ragspan.outcomes import Usage


class Question:
    """A question that is answered when a test says so, in whatever loop it was asked; it counts how often it was."""

    def __init__(self):
        self.times = 0
        self.cancelled = 0
        self.was_asked = threading.Event()
        self._going = []

    async def __call__(self):
        self.times += 1
        answer = asyncio.get_running_loop().create_future()
        going = asyncio.get_running_loop(), answer
        self._going.append(going)
        self.was_asked.set()
        report_usage(Usage(requests=1))
        try:
            return await answer
        except asyncio.CancelledError:
            self.cancelled += 1
            self._going.remove(going)
            raise

    def answer(self, text):
        for loop, answer in self._going:
            loop.call_soon_threadsafe(answer.set_result, text)
        self._going.clear()

    def fail(self, error):
        for loop, answer in self._going:
            loop.call_soon_threadsafe(answer.set_exception, error)
        self._going.clear()


async def turns(count=10):
    """Let every task run until it waits."""
    for _ in range(count):
        await asyncio.sleep(0)


def start(once, question, case="case"):
    return asyncio.ensure_future(once.ask(case, "claims", question))


@pytest.fixture
def once():
    return Once()


@pytest.fixture
def question():
    return Question()


async def test_those_who_ask_at_the_same_time_share_one_answer(once, question):
    waiting = [start(once, question) for _ in range(3)]
    await turns()
    question.answer("yes")

    assert await asyncio.gather(*waiting) == ["yes"] * 3
    assert question.times == 1


async def test_who_asks_later_gets_the_answer_that_is_there(once, question):
    first = start(once, question)
    await turns()
    question.answer("yes")
    await first

    assert await once.ask("case", "claims", question) == "yes"
    assert question.times == 1


async def test_other_cases_and_other_questions_are_asked_by_themselves(once):
    async def other():
        return "other"

    async def ask():
        return "this"

    answers = [
        await once.ask("case", "claims", ask),
        await once.ask("another", "claims", other),
        await once.ask("case", "use", other),
    ]

    assert answers == ["this", "other", "other"]


async def test_the_first_is_charged_and_only_once(once, question):
    async def ask():
        with metered() as meter:
            await once.ask("case", "claims", question)
        return meter.total.requests

    waiting = [asyncio.ensure_future(ask()) for _ in range(3)]
    await turns()
    question.answer("yes")

    assert await asyncio.gather(*waiting) == [1, 0, 0]


async def test_the_first_who_stops_waiting_takes_nothing_from_the_others(once, question):
    first, second = start(once, question), start(once, question)
    await turns()
    first.cancel()
    await turns()
    question.answer("yes")

    assert await second == "yes"
    assert first.cancelled()
    assert (question.times, question.cancelled) == (1, 0)


async def test_a_question_that_nobody_waits_for_any_more_is_given_up(once, question):
    waiting = [start(once, question) for _ in range(2)]
    await turns()
    for one in waiting:
        one.cancel()
    await turns()

    assert question.cancelled == 1
    assert len(once) == 0


async def test_after_a_question_was_given_up_it_is_asked_anew(once, question):
    first = start(once, question)
    await turns()
    first.cancel()
    second = start(once, question)
    await turns()
    question.answer("yes")

    assert await second == "yes"


async def test_an_error_goes_to_all_who_wait_and_is_not_kept(once, question):
    waiting = [start(once, question) for _ in range(2)]
    await turns()
    question.fail(JudgeError("RateLimitError", "Slow down."))

    errors = await asyncio.gather(*waiting, return_exceptions=True)
    again = start(once, question)
    await turns()
    question.answer("yes")

    assert [error.error_type for error in errors] == ["RateLimitError"] * 2
    assert await again == "yes"
    assert question.times == 2


async def test_what_the_first_may_not_spend_the_others_ask_for_themselves(once, question):
    first, second, third = (start(once, question) for _ in range(3))
    await turns()
    question.fail(BudgetExhausted("requests_per_minute"))
    await turns()
    question.answer("yes")

    with pytest.raises(BudgetExhausted):
        await first
    assert await asyncio.gather(second, third) == ["yes"] * 2
    assert question.times == 2


async def test_the_oldest_answers_are_forgotten_first():
    once = Once(max_answers=2)
    asked = []

    async def ask():
        asked.append(1)
        return "yes"

    for case in ("a", "b", "c", "c", "b", "a"):
        await once.ask(case, "claims", ask)

    assert len(once) == 2
    assert len(asked) == 4


def test_threads_with_loops_of_their_own_share_one_answer(once, question):
    answers = []

    def ask():
        answers.append(asyncio.run(once.ask("case", "claims", question)))

    first = threading.Thread(target=ask)
    first.start()
    assert question.was_asked.wait(10)
    others = [threading.Thread(target=ask) for _ in range(3)]
    for thread in others:
        thread.start()
    question.answer("yes")
    for thread in [first, *others]:
        thread.join(10)

    assert answers == ["yes"] * 4
    assert question.times == 1


def test_who_waits_in_another_loop_asks_itself_when_the_first_loop_ends(once, question):
    first_may_leave = threading.Event()
    answers = []

    async def ask_and_leave():
        asyncio.ensure_future(once.ask("case", "claims", question))  # noqa: RUF006  it is cancelled with its loop
        await turns()
        await asyncio.to_thread(first_may_leave.wait, 10)

    async def ask():
        waiting = start(once, question)
        await turns()
        question.was_asked.clear()
        first_may_leave.set()
        await asyncio.to_thread(question.was_asked.wait, 10)
        question.answer("yes")
        answers.append(await waiting)

    first = threading.Thread(target=asyncio.run, args=(ask_and_leave(),))
    first.start()
    assert question.was_asked.wait(10)
    asyncio.run(ask())
    first.join(10)

    assert answers == ["yes"]
    assert question.times == 2


def test_what_was_asked_in_a_loop_that_ended_without_a_word_is_asked_anew(once, question):
    loop = asyncio.new_event_loop()
    asking = loop.create_task(once.ask("case", "claims", question))
    loop.run_until_complete(turns())
    lost = asyncio.all_tasks(loop)
    for task in lost:
        task._log_destroy_pending = False  # asyncio would log what this test is about
    loop.close()
    assert asking in lost

    async def ask():
        waiting = start(once, question)
        await turns()
        question._going[-1][1].set_result("yes")
        return await waiting

    assert asyncio.run(ask()) == "yes"


async def test_a_copy_for_another_process_knows_no_answers(once):
    async def ask():
        return "yes"

    await once.ask("case", "claims", ask)

    assert len(pickle.loads(pickle.dumps(once))) == 0
