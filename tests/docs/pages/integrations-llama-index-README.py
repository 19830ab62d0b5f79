from reader_program import make_index, question

query_engine = make_index().as_query_engine()
