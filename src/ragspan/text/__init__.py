"""Text as readers see it: languages, sentences, words and their keys, and what the parts of a response are."""
