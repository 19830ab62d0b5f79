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
        question="Does the response as a whole keep to its contexts?",
        when_low="read the explanation. Then look at the contexts: a response cannot be grounded if they do not "
        "contain the answer (context_relevance). If they do, instruct the model to keep to them, or to "
        "say when they do not contain the answer.",
    ),
    "completeness": Guide(
        question="How much of the relevant information does the response include?",
        when_low="the prompt may ask for brevity, the response may stop early (gen_ai.response.finish_reasons), or"
        " the contexts may contain far more than the question needs.",
    ),
    "context_utilization": Guide(
        question="Were the useful contexts at the top of the ranking?",
        when_low="the retriever ranks badly. Try a reranker, or fewer contexts.",
    ),
    "faithfulness": Guide(
        question="Which of its claims do the contexts support?",
        when_low="the explanation lists what to look for: inventions, knowledge from the model's training, or "
        "facts from documents that did not reach the prompt. By default one claim in five may be "
        "unsupported, and none of up to four.",
    ),
    "faithfulness_hhem": Guide(
        question="The same, by a classifier",
        when_low="look at the claims that the explanation lists, and at the probabilities in evidence: near 0.5 "
        "the classifier is unsure. If faithfulness differs, read the claims on which they do, and compare"
        ' with premise="best_context".',
    ),
    "answer_relevance": Guide(
        question="Does the response address the question?",
        when_low="see whether the response is a refusal (ragspan.answer.refusal), and whether the contexts contain"
        " an answer (context_relevance). If not, the question may have been rewritten badly, or the "
        "prompt asks for too much around the answer.",
    ),
    "context_relevance": Guide(
        question="Did the retriever find what answers the question?",
        when_low="with a low best, no model could have answered: check the documents, the index and the query. "
        "With a high one, fetch fewer documents, or rerank them.",
    ),
    "chunk_attribution": Guide(
        question="Which contexts contributed to the response?",
        when_low="fetch fewer documents. When it is 0, the response came from elsewhere: see context adherence.",
    ),
    "chunk_utilization": Guide(
        question="How much of the contexts' text did the response use?",
        when_low="with high chunk_attribution, the contexts are longer than necessary: make smaller chunks. With "
        "low attribution, fetch fewer.",
    ),
}

REASONS: Mapping[str, str] = {
    "answer_aborted": "the request was cancelled, or the reader closed the stream early",
    "answer_error": "the request raised an exception",
    "interrupted": "a graph stopped to wait for a person",
    "no_response": "the caller received no text",
    "no_question": "there is no question, and the metric needs one",
    "contexts_unknown": "no callback showed the documents that the model saw: use ragspan.record_contexts(docs)",
    "no_contexts": "nothing was retrieved, or nothing retrieved reached the prompt",
    "not_sampled": "the trace is not sampled, or the sample rate omitted the answer",
    "budget_exhausted": "the engine's budget is spent, and there is no fallback judge",
    "no_claims": "the response makes no claims",
    "too_many_contexts": "the metric asks about each context, and there are more than the judge can distinguish: 1,000 for the"
    " overlap judge, for an LLM judge as many as fit its prompt",
    "language": "the response is in another language than the contexts, and the overlap judge compares words",
}
"""Why a metric of ragspan's has no score; other reasons are those of other metrics, and kinds of failures."""
