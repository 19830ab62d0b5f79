"""Every program in `benchmarks/` runs, and its figures are of what it says that it measures."""

from __future__ import annotations

from pathlib import Path

import pytest
from servers.broker import server_program

pytestmark = pytest.mark.slow

MAX_GROWTH = 10.0  # MB, of which the scores of a table themselves take one
MODEL_MS = 30  # what the model of the slowest answers waits before it answers
ROUNDING = 0.01  # the machine's clock ticks a hundred times a second
FOUR_METRICS = "ragspan, all four metrics"
OTHERS_THAT_JUDGE = {
    *("ragspan, faithfulness and utilization", "ragspan, context_adherence", "ragspan, completeness"),
    *("ragspan, context_utilization", "ragspan, faithfulness"),
}
RAGAS = {"Ragas, Faithfulness and ContextUtilization", "Ragas, Faithfulness", "Ragas, ContextUtilization"}
OURS = {"ragspan", "ragspan, with its engine", "ragspan, helper exports"}
PEERS = {"OpenInference", "Langfuse", "MLflow", "Opik", "DeepEval"}


def test_false_pages_are_rare_and_rises_are_found(figures_of):
    figures = figures_of("alarms.py")

    assert sum(one["pages"] for one in figures["false_pages"]) / len(figures["false_pages"]) < 1
    assert all(one["hours"][1] <= 12 for one in figures["delays"] if one["rate"] == 200)


def test_background_costs_an_answer_with_documents_no_request_and_at_most_a_bounded_prompt(figures_of):
    measured = figures_of("background_tokens.py", quick=False)

    assert len(measured) == 10
    for one in measured:
        assert (one["background"] > 0) == (one["prompt_with"] > one["prompt"])
        if one["prompt"]:  # it has documents
            assert one["requests_with"] == one["requests"]
            assert one["prompt_with"] < 2 * one["prompt"]
        else:
            assert (one["requests"], one["requests_with"]) == (0, 3)


def test_a_record_enters_functions_of_the_engine_and_of_its_emitter(figures_of):
    figures = figures_of("call_depth.py")

    assert {"engine", "telemetry"} <= set(figures["packages"])
    assert figures["functions"] == sum(package["functions"] for package in figures["packages"].values())


def test_ragspan_and_what_is_installed_with_the_tests_run_the_same_cases(figures_of):
    counted = figures_of("capture.py")

    rows = {(row["framework"], row["peer"]): row for row in counted}
    frameworks, peers = ("langchain", "llama-index"), ("ragspan", "receiver-openinference", "openinference")
    assert rows.keys() == {(framework, peer) for framework in frameworks for peer in peers}
    for framework in frameworks:
        ours, receiver, theirs = (rows[framework, peer] for peer in peers)
        assert ours["cases"] == theirs["cases"] >= 15
        assert ours["requests_strictly_right"] == ours["requests"] >= ours["cases"]
        assert 0 < theirs["requests_right"] <= theirs["requests"]
        assert receiver["requests_right"] >= 0.85 * ours["requests"]
    cases = [case for row in counted for case in row["details"]]
    requests = [one for case in cases for comparison in case["comparisons"] for one in comparison["requests"]]
    assert {"question", "contexts", "background", "response", "status"} == set(requests[0]["expected"])
    assert all(request["seen"] or request["faults"] == ["missed"] for request in requests)


def test_a_dropped_document_is_told_from_one_that_was_never_retrieved(figures_of, judgements_of):
    towns = ("Lisbon", "Porto", "Braga", "Faro", "Coimbra", "Evora", "Sintra", "Aveiro")
    facts = {town: f"The oldest bakery of {town} sells round loaves of dark bread every Monday." for town in towns}
    rows = [
        {
            "question": f"What does {town} sell?",
            "source_id": town,
            "contexts": [fact],
            "response": fact,
            "supported": True,
        }
        for town, fact in facts.items()
    ]

    told = figures_of("causes.py", judgements_of(made_up=rows))["made_up"]

    dropped = told["dropped, unrelated beside it"]
    assert dropped["answers"] == {"lost_before_prompt": len(towns)}
    assert dropped["right_document"] == len(towns)
    assert told["never retrieved, unrelated dropped"]["answers"] == {"unsupported": len(towns)}


def test_two_checkouts_score_all_kinds_of_traffic_everywhere(figures_of, tmp_path):
    other = tmp_path / "other"
    other.symlink_to(Path(__file__).parents[2])
    results = figures_of("embedded_judge.py", "--against", other)["results"]

    assert {(result["checkout"], result["place"], result["traffic"]) for result in results} == {
        (checkout, place, traffic)
        for checkout in ("this checkout", "other")
        for place in ("alone", "in an engine")
        for traffic in ("all different", "repeated")
    }
    assert all(rate > 0 for result in results for rate in result["rates"])


def test_all_four_metrics_take_few_requests_that_have_most_in_common(figures_of):
    measured = figures_of("judge_cost.py")
    results = {result["contender"]: result for result in measured["results"]}
    left_out = {absent["contender"]: absent["reason"] for absent in measured["left_out"]}

    assert results.keys() >= {FOUR_METRICS, *OTHERS_THAT_JUDGE}
    assert results.keys() | left_out.keys() == {FOUR_METRICS, *OTHERS_THAT_JUDGE, *RAGAS}
    assert all(left_out.values())
    four = results[FOUR_METRICS]
    assert measured["passages"] == 5
    assert four["requests"] <= measured["targets"]["requests"]
    assert four["common_tokens"] / four["prompt_tokens"] >= measured["targets"]["common_share"]
    for result in results.values():
        assert 0 <= result["cached_tokens"] <= result["cacheable_tokens"] < result["prompt_tokens"]
        assert (result["cacheable_tokens"] == 0) == (result["requests"] == 1)
        assert result["completion_tokens"] > 0


def test_intervals_are_simulated_for_each_number_of_labels(figures_of):
    rows = figures_of("rates.py")

    assert {row["labels"] for row in rows} == {50, 100, 300, 1000}
    assert all(0.8 <= row["coverage"] <= 1 for row in rows)


def test_the_receiver_reads_or_refuses_every_trace(figures_of):
    rows = {row["traces"]: row for row in figures_of("receiving.py", "--rate", 500)}

    assert list(rows) == ["read", "too little memory"]
    assert [row["lost"] for row in rows.values()] == [0, 0]
    assert rows["read"]["refused"] == 0
    waited = rows["too little memory"]["sent"] < rows["read"]["sent"]
    assert waited or 0 < rows["too little memory"]["refused"] < rows["too little memory"]["sent"]


def test_answers_that_people_find_unsupported_are_high_risk_and_the_others_are_not(run_benchmark, judgements_of):
    context = "The tower is 330 metres high. It was built in 1889."
    answers = [("The tower is 330 metres high.", True), ("Romans painted it green with brushes.", False)] * 20
    rows = [
        {"question": "How high is the tower?", "contexts": [context], "response": response, "supported": supported}
        for response, supported in answers
    ]
    done = run_benchmark("report_signs.py", judgements_of(made_up=rows) / "made_up.jsonl.gz")
    _, supported, unsupported = done.stdout.split("made_up, ")[1:]

    assert supported.startswith("supported: 20 answers, 100% supported by people")
    assert "high" not in supported
    assert "(high)" in next(line for line in unsupported.splitlines() if line.strip().startswith("faithfulness"))


@pytest.mark.parametrize("file_format", ["csv", "jsonl"])
def test_a_table_six_times_as_large_needs_no_more_memory(run_benchmark, file_format):
    arguments = ("--megabytes", 4, 24, "--metrics", "context_utilization", "--format", file_format)
    done = run_benchmark("evaluate_tables.py", *arguments)
    small, large = (line.replace(",", "").split() for line in done.stdout.splitlines()[1:])

    assert int(large[1]) > 5 * int(small[1]) > 1000
    assert float(large[4]) - float(small[4]) < MAX_GROWTH


def test_each_contestant_of_the_hot_path_is_measured_or_left_out_with_a_reason(figures_of):
    measured = figures_of("hot_path.py")
    programs, costs = measured["programs"], {cost["contestant"]: cost for cost in measured["peers"]}
    left_out = {absent["contestant"]: absent["reason"] for absent in measured["left_out"]}

    assert {program["framework"] for program in programs} == {"LangChain", "LlamaIndex"}
    assert {"invoke", "astream", "query", "stream_chat"} <= {program["scenario"] for program in programs}
    assert costs.keys() >= {*OURS, "OpenInference"}
    assert costs.keys() | left_out.keys() == OURS | PEERS
    assert not costs.keys() & left_out.keys()
    assert all(left_out.values())
    assert all(cost["bare_us"] > 0 for cost in (*programs, *costs.values()))
    assert {name for name, cost in costs.items() if cost["exported_bytes"] == 0} == {"ragspan"}


def test_the_callbacks_of_a_query_are_measured_one_by_one(run_benchmark):
    done = run_benchmark("callbacks.py", "--program", "query", "--requests", 3)

    rows = [line.split()[0] for line in done.stdout.splitlines() if line.strip()]
    assert rows.count("span_enter") == rows.count("span_exit") == 14


def test_the_records_of_long_requests_hold_what_reached_the_prompts(figures_of):
    measured = {row["case"]: row for row in figures_of("long_requests.py")}
    says = {case: row["says"] for case, row in measured.items()}

    assert len(measured) == 12
    assert all(len(row["seconds"]) == 2 and min(row["seconds"]) > 0 for row in measured.values())
    assert says["agent"] == says["agent, other order"] == "200 contexts"
    assert says["agent, trimmed"] == "200 contexts, 200 truncated"
    assert says["contexts"] == says["contexts, other order"] == "2500 contexts"
    assert says["answer"] == "10 contexts"
    assert says["LlamaIndex, contexts"] == says["LlamaIndex, partial answers"] == "200 contexts"


# Those that want the machine for themselves


@pytest.mark.alone
def test_one_worker_of_the_fleet_and_two_are_measured_and_what_one_can_do_at_most(figures_of):
    server_program()
    measured = figures_of("fleet.py")
    scaling, ceiling = measured["runs"]["scaling"], measured["runs"]["ceiling"]

    assert [(run["judge"], run["workers"]) for run in scaling] == [("endpoint", 1), ("endpoint", 2)]
    assert [(run["judge"], run["latency"]) for run in ceiling] == [("endpoint", 0.0), ("overlap", 0.0)]
    assert measured["ratios"] == {"2": pytest.approx([scaling[1]["per_second"] / scaling[0]["per_second"]] * 3)}
    for run in scaling:  # the rate is that of what leaves the stream, which happens in batches
        assert 0 < run["per_second"] < 1.25 * run["workers"] * measured["concurrency"] / (2 * measured["latency_s"])
        assert run["judge_cpu"] > 0
        assert run["judge_share"] < 0.8, "the endpoint would be what is measured"
    for run in (*scaling, *ceiling):
        assert run["worker_cpu"] > 0
        assert run["worker_cpu"] * run["per_second"] < 1.1 * measured["machine"]["processors"]
        assert 0 < run["machine_share"] <= 1.01


@pytest.mark.alone
def test_everything_that_has_to_hold_holds_in_a_soak_in_which_every_kind_of_fault_happens(figures_of):
    soaked = figures_of("soak.py")
    stats, sample = soaked["stats"], soaked["samples"][-1]

    assert soaked["checks"]
    assert all(soaked["checks"].values())
    assert soaked["looks"] > 100
    assert stats["submitted"] == soaked["answers"] > 400
    assert soaked["spans_received"] > 0
    assert {"invoke", "query", "capture"} <= soaked["runs"].keys()
    assert len(soaked["runs"]) > 10
    assert sum(soaked["forks"].values()) == soaked["faults"]["fork"] > 0
    assert soaked["faults"].keys() >= {"burst", "endpoint of spans down", "endpoint of spans up", "helper killed"}
    assert stats["dropped"]["queue_full"] > 0
    assert stats["errors"]["metric"] > 0
    assert soaked["judge_fates"].keys() >= {"answered", "429", "500", "cut"}
    assert sample["rss_mib"] > 10
    assert sample["threads"] > 5
    assert sample["submitted"] == sample["queued"] + sample["in_flight"] + sample["finished"] + sample["dropped"]


@pytest.mark.alone
def test_the_slowest_answers_are_measured_with_everything_scored_by_the_application_and_by_the_helper(figures_of):
    measured = figures_of("tail_latency.py", "--rate", 40)

    assert [pair["on"]["mode"] for pair in measured["pairs"]] == ["application", "helper"]
    assert measured["targets"] == {"application": 1.15, "helper": 1.15, "nats": 1.1}
    for summary, pair in zip(measured["summaries"], measured["pairs"], strict=True):
        off, on = pair["off"], pair["on"]
        assert (off["mode"], off["scored"], summary["mode"]) == ("off", 0, on["mode"])
        assert off["spans"] == off["requests"] == on["requests"] == on["scored"] > 0
        assert on["spans"] == on["requests"] * 4
        assert MODEL_MS < off["p50_ms"] <= off["p99_ms"]
        assert MODEL_MS < on["p50_ms"] <= on["p99_ms"]
        assert summary["ratio"] == pytest.approx(on["p99_ms"] / off["p99_ms"])
        assert 0 < on["application_share"] < on["machine_share"] <= 1 + ROUNDING
        assert on["helper_share"] > 0 == off["helper_share"]


@pytest.mark.alone
def test_with_a_broker_every_record_is_in_the_stream_and_none_is_scored(figures_of):
    server_program()
    (pair,) = figures_of("tail_latency.py", "--rate", 40, "--mode", "nats")["pairs"]
    off, on = pair["off"], pair["on"]

    assert (off["mode"], on["mode"]) == ("off", "nats")
    assert off["published"] == on["scored"] == on["helper_share"] == 0
    assert on["published"] == on["spans"] == on["requests"] == off["requests"] > 0


@pytest.mark.alone
def test_throughput_has_everything_judged_and_nobody_is_faster_than_the_judge_allows(figures_of):
    measured = figures_of("throughput.py")
    memory, limit = measured["memory"], 16 / measured["latency_s"]

    assert measured["left_out"] == []
    assert {result["contender"]: result["limit"] for result in measured["results"]} == pytest.approx(
        {"bare-client": limit, "ragspan": limit, "ragspan-four-metrics": limit / 2}
    )
    for result in measured["results"]:
        assert result["judged"] == result["answers"] > 0
        assert 0 < result["per_second"] <= result["limit"]
        assert result["share"] == pytest.approx(result["per_second"] / result["limit"])
        assert result["cpu_ms"] > 0
    assert memory["submitted_bytes"] == 10 * memory["queue_bytes"]
    assert memory["queued"] > 0 < memory["dropped"]
    assert memory["after"] - memory["before"] <= memory["queue_bytes"] + memory["base"]
