"""What each metric asks and what to look at when it is low, in the words of the documentation.

`docs/metrics.md` is the source; a test holds the two together.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Guide:
    """What a reader of a report has to know about a metric."""

    question: str
    when_low: str


GUIDES: Mapping[str, Guide] = {
    "context_adherence": Guide(
        question="Does the whole response keep to its passages?",
        when_low="read the explanation. Look at the passages next: an answer cannot be grounded in passages that do not "
        "hold it (context_relevance). If they do, tell the model to keep to them, or to say when they do not hold the "
        "answer.",
    ),
    "completeness": Guide(
        question="How much of what the passages hold in answer is in it?",
        when_low="the prompt may ask for brevity, the answer may stop early (gen_ai.response.finish_reasons), or the "
        "passages may hold far more than the question needs.",
    ),
    "context_utilization": Guide(
        question="Did the passages that were used stand at the top?",
        when_low="the retriever ranks badly. Try a reranker, or fewer passages.",
    ),
    "faithfulness": Guide(
        question="Which of its claims follow from the passages?",
        when_low="the explanation lists what to look for: inventions, knowledge from the model's training, or facts "
        "from passages that did not reach the prompt. By default one claim in five may be unsupported, and none of up "
        "to four.",
    ),
    "faithfulness_hhem": Guide(
        question="The same, by a classifier",
        when_low="look at the claims that the explanation lists, and at the probabilities in evidence: near 0.5 the "
        "classifier is unsure. Where faithfulness differs, read the claims on which they do, and compare with "
        'premise="best_context".',
    ),
    "answer_relevance": Guide(
        question="Does it speak to what was asked?",
        when_low="see whether it is a refusal (ragspan.answer.refusal), and then whether the passages hold an answer "
        "(context_relevance). Else the question may have been rewritten badly before it was answered, or the prompt "
        "asks for too much around the answer.",
    ),
    "context_relevance": Guide(
        question="Did the retriever find what answers the question?",
        when_low="with a low best, no model could have answered: the documents, the index or the query are at fault. "
        "With a high one, fetch fewer passages, or rerank them.",
    ),
    "chunk_attribution": Guide(
        question="Which passages had a part in it?",
        when_low="fetch fewer passages. When it is 0, the response came from elsewhere: see adherence.",
    ),
    "chunk_utilization": Guide(
        question="How much of their text went into it?",
        when_low="with high chunk_attribution, passages are longer than they need to be: make smaller chunks. With low "
        "attribution, fetch fewer.",
    ),
}

REASONS: Mapping[str, str] = {
    "answer_aborted": "the request was cancelled, or the reader left the stream early",
    "answer_error": "the request raised",
    "interrupted": "a graph stopped to wait for a person",
    "no_response": "the caller got no text",
    "no_question": "there is no question, and the metric is about it",
    "contexts_unknown": "no callback showed the documents that the model saw: use ragspan.record_contexts(docs)",
    "no_contexts": "nothing was retrieved, or nothing retrieved reached the prompt",
    "not_sampled": "the trace is not sampled, or the answer was not chosen by the sample rate",
    "budget_exhausted": "the engine's budget is spent, and nothing stands in for the judge",
    "no_claims": "the response makes no claims",
    "too_many_contexts": "the metric asks about each context, and there are more than the judge tells apart: 1,000 for the "
    "overlap judge, for an LLM judge as many as fit its prompt",
    "language": "the response is in another language than the contexts, and the overlap judge compares words",
}
"""Why a metric of ragspan's has no score; other reasons are those of other metrics, and kinds of failures."""
