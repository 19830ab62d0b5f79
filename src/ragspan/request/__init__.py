"""Makes a record of one request: which text was the question, which the answer, and which documents stood in its prompts.

`events` makes a `RequestTree` of a log, and `record_making` the record of a tree. Integrations import these names from here, with
what reads prompts and providers' replies.
"""

from ragspan.matching import PromptTexts, unescaped
from ragspan.provider_replies import notes_of, reports_search
from ragspan.request.contents import (
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
from ragspan.request.documents import SeenDocuments, context_of_seen
from ragspan.request.events import (
    ModelStart,
    RerankStart,
    SearchStart,
    SynthesisStart,
    ToolStart,
    record_of_log,
    tree_of,
)
from ragspan.request.evidence import contexts_behind, originals_of
from ragspan.request.question_and_response import question_in
from ragspan.request.record_making import record_of
from ragspan.request.tool_documents import documents_of_result, searched_with
from ragspan.request.tree import (
    INTERRUPTS,
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
    "INTERRUPTS",
    "MAX_SAVED_STATES",
    "MEDIA",
    "MESSAGE",
    "NO_INPUT_YET",
    "ROLES",
    "UNREAD",
    "Call",
    "Document",
    "FilledPrompt",
    "ModelStart",
    "ModelStep",
    "PayloadMessage",
    "PromptTexts",
    "RequestTree",
    "RerankStart",
    "RerankStep",
    "SearchStart",
    "SearchStep",
    "SeenDocument",
    "SeenDocuments",
    "Step",
    "SynthesisStart",
    "SynthesisStep",
    "ToolStart",
    "ToolStep",
    "context_of_seen",
    "contexts_behind",
    "documents_in",
    "documents_of_result",
    "json_in",
    "notes_of",
    "originals_of",
    "question_in",
    "record_of",
    "record_of_log",
    "reports_search",
    "searched_with",
    "texts_in",
    "tree_of",
    "unescaped",
    "without_thoughts",
]
