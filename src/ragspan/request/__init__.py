"""Makes a record of one request: which text was the question, which the answer, and which documents stood in its prompts.

`tree` makes a `RequestTree` of a log, and `record_making` the record of a tree. Integrations import these names from here, with
what reads prompts and providers' replies.
"""

from ragspan.matching import has_words as has_words
from ragspan.matching import unescaped as unescaped
from ragspan.provider_replies import notes_of as notes_of
from ragspan.provider_replies import reports_search as reports_search
from ragspan.request.contents import MEDIA as MEDIA
from ragspan.request.contents import MESSAGE as MESSAGE
from ragspan.request.contents import ROLES as ROLES
from ragspan.request.contents import UNREAD as UNREAD
from ragspan.request.contents import Call as Call
from ragspan.request.contents import Document as Document
from ragspan.request.contents import FilledPrompt as FilledPrompt
from ragspan.request.contents import PayloadMessage as PayloadMessage
from ragspan.request.contents import texts_in as texts_in
from ragspan.request.documents import SeenDocuments as SeenDocuments
from ragspan.request.documents import documents_in as documents_in
from ragspan.request.documents import documents_of_result as documents_of_result
from ragspan.request.documents import searched_with as searched_with
from ragspan.request.evidence import contexts_of_calls as contexts_of_calls
from ragspan.request.record_making import record_of as record_of
from ragspan.request.record_making import record_of_log as record_of_log
from ragspan.request.steps import ModelStep as ModelStep
from ragspan.request.steps import RerankStep as RerankStep
from ragspan.request.steps import SearchStep as SearchStep
from ragspan.request.steps import Step as Step
from ragspan.request.steps import StepStart as StepStart
from ragspan.request.steps import SynthesisStep as SynthesisStep
from ragspan.request.steps import ToolStep as ToolStep
from ragspan.request.tree import INTERRUPTS as INTERRUPTS
from ragspan.request.tree import NO_INPUT_YET as NO_INPUT_YET
from ragspan.request.tree import RequestTree as RequestTree
from ragspan.request.tree import tree_of as tree_of
