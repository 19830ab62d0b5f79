from reader_program import make_chain

chain = make_chain()
