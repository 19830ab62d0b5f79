from reader_program import make_chain, question

chain = make_chain()
