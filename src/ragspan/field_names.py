"""What programs call things: the keys under which a question, an answer, a document's parts or a conversation's id stand."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable
from typing import Any, Final

from ragspan.safe_copy import plain_scalar

TEXT: Final = ("text", "page_content", "content", "document", "contents", "passage", "long_text")
"""Of a document; the first that holds a text."""
ID: Final = ("id", "id_", "node_id", "doc_id", "document_id", "chunk_id")
METADATA: Final = ("metadata", "meta")
SCORE: Final = ("score", "distance")
SOURCE: Final = ("source", "file_name", "file_path", "url", "title")
CONTEXTS: Final = ("contexts", "retrieved_contexts", "retrieval_context", "context", "documents", "source_documents")

QUESTION: Final = (
    *("question", "query", "user_question", "user_query", "user_input"),
    *("user_msg", "user_message", "query_str", "q"),
)
"""Fields that are the question, the surest first."""
OFTEN_QUESTION: Final = ("input", "prompt")
"""Fields that are the question unless something else was searched with."""
ASKING: Final = ("question", "query", "input", "request", "ask", "message", "msg", "text", "topic", "prompt")
"""Words in the names of fields that may be the question, the likeliest first."""
NOT_ASKING: Final = frozenset(
    {"name", "id", "type", "role", "lang", "language", "locale", "model", "system", "template", "instruction"}
    | {"instructions", "persona", "format", "schema", "history", "memory", "context", "examples", "tone", "style"}
)
"""Words in the names of fields that are the question only if nothing else may be."""

ANSWER: Final = ("answer", "response", "actual_output", "output")
FINAL_ANSWER: Final = ("structured_response", "answer", "final_answer")
"""Fields of a program's state that are the answer, whatever else is there."""
ANSWERING: Final = frozenset({"answer", "response", "reply", "generation", "report"})
"""Fields with these names are the answer even beside a conversation; a `summary` may be one of the conversation."""
REPLYING: Final = (
    *("answer", "response", "reply", "result", "output", "generat"),
    *("completion", "summary", "report", "text"),
)
"""Words in the names of fields that may be the answer, the likeliest first."""

SESSION: Final = (
    *("session_id", "session.id", "thread_id", "conversation_id"),
    *("langfuse_session_id", "gen_ai.conversation.id", "sessionId", "threadId", "conversationId"),
)
USER: Final = ("user_id", "user.id", "langfuse_user_id", "enduser.id", "userId")

_word = re.compile(r"[a-z]+")
_case = re.compile(r"(?<=[a-z])(?=[A-Z])")


def words_in_name(name: str) -> set[str]:
    """The words that the name of a field consists of."""
    return set(_word.findall(_case.sub("_", name).lower()))


def identifier(candidates: Iterable[Any]) -> str | None:
    """The first that identifies something: a number, a UUID, a text that is not blank."""
    texts = (str(plain_scalar(one)) for one in candidates if issubclass(type(one), (str, int, uuid.UUID)))
    return next((name for name in texts if name.strip()), None)
