"""Makes a record of one request: which text was the question, which the answer, and which documents stood in its prompts.

`events` makes a `RequestTree` of a log, and `record_making` the record of a tree. Integrations import these names from here, with
what reads prompts and providers' replies.
"""

from ragspan.matching import PromptTexts, unescaped
from ragspan.provider_replies import notes_of
from ragspan.provider_search import reports_search
from ragspan.runs.contents import (
    MEDIA,
    MESSAGE,
    ROLES,
    UNREAD,
    Call,
    Document,
    FilledPrompt,
    PayloadMessage,
    documents_in,
    json_in,
    texts_in,
)
from ragspan.runs.documents import SeenDocuments
from ragspan.runs.events import ModelStart, SearchStart, ToolStart, record_of_log, tree_of
from ragspan.runs.grounds import Grounds, contexts_behind, evidence_behind, grounds_of, with_recorded
from ragspan.runs.question_and_response import question_in
from ragspan.runs.record_making import make_record, record_with
from ragspan.runs.step_records import context_of, context_of_seen
from ragspan.runs.tool_documents import documents_of_result, searched_with
from ragspan.runs.tree import (
    INTERRUPT,
    MAX_SAVED_STATES,
    NO_INPUT_YET,
    ModelStep,
    RequestTree,
    RerankStep,
    SearchStep,
    SeenDocument,
    Step,
    SynthesisStep,
    ToolStep,
)
from ragspan.text.answers import without_thoughts

__all__ = [
    "INTERRUPT",
    "MAX_SAVED_STATES",
    "MEDIA",
    "MESSAGE",
    "NO_INPUT_YET",
    "ROLES",
    "UNREAD",
    "Call",
    "Document",
    "FilledPrompt",
    "Grounds",
    "ModelStart",
    "ModelStep",
    "PayloadMessage",
    "PromptTexts",
    "RequestTree",
    "RerankStep",
    "SearchStart",
    "SearchStep",
    "SeenDocument",
    "SeenDocuments",
    "Step",
    "SynthesisStep",
    "ToolStart",
    "ToolStep",
    "context_of",
    "context_of_seen",
    "contexts_behind",
    "documents_in",
    "documents_of_result",
    "evidence_behind",
    "grounds_of",
    "json_in",
    "make_record",
    "notes_of",
    "question_in",
    "record_of_log",
    "record_with",
    "reports_search",
    "searched_with",
    "texts_in",
    "tree_of",
    "unescaped",
    "with_recorded",
    "without_thoughts",
]
