from reader_program import RESPONSE, question, texts

documents = contexts = texts


def my_model(*_):
    return RESPONSE
