"""The helper: a process of the engine's own that computes, so that the application's interpreter is free for requests.

It is a plain Python process that imports ragspan and nothing of the application's. It lives as long as its socket: when
the application ends, in whatever way, the helper reads the end of the stream and ends as well.

In the application:

- `process` starts and ends the process. `connection` sends messages to it and kills it if it hangs.
- `client` keeps one helper running. It starts a new one when one dies, and asks the lost questions again, one by one.
- `scoring` asks for single metrics. `engine._forwarding` sends whole records, which the helper also exports.
- `serialization` makes records plain data.

In the helper: `serving` is its program, and `engine._helper_services` answers the questions.

A message is a tuple: a kind, the number of a question or 0, and plain data. The application sends:

- `("serve", number, service, *arguments)`: the first question. It names a class in `engine._helper_services`; the answer is the format of
  the data, which has to be the application's.
- `("score", number, metric, session, record)` to a `MetricService`: the answer is the pickled outcome.
- `("score", number, record, sample, is_awaited)` to a `RecordService`: the answer is what became of the record.
- `("flush", number, seconds)` and `("stop", number, seconds)` to a `RecordService`.
- `("cancel", 0, number)`: nobody waits for this answer any more.

The helper sends:

- `("answer", number, value)`, or `("refusal", number, reason)` where it cannot answer.
- `("error", 0, place)`: something went wrong that the application counts.
- `("log", 0, logger, level, text)`: a record for the application's log.
"""
