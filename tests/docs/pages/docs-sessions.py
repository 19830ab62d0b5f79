from reader_program import make_chain, make_index, question, texts

chain = make_chain()
query_engine = make_index().as_query_engine()
contexts = texts
