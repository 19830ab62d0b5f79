"""One request as the runs of a framework, and the record that they make: which text was the question, which the answer, and which documents were behind it.

`trace` turns a log into runs, `record` makes the record of them. LangChain's handler and the readers of other
instrumentations' spans write the log.
"""
