from reader_program import texts

documents = texts
