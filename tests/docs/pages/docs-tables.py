from reader_program import question, texts

from ragspan import RagRecord, RetrievedContext

questions = [question]


def answer_all(questions):
    contexts = tuple(RetrievedContext(text=text) for text in texts)
    return [RagRecord(question=question, contexts=contexts, response=texts[0]) for question in questions]


def after_block():
    for name in [name for name in globals() if name.startswith("test_")]:
        globals().pop(name)()
