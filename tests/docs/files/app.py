"""A reader's application: it answers one question."""

from reader_program import make_chain, question

import ragspan

ragspan.configure()

print(make_chain().invoke(question))
