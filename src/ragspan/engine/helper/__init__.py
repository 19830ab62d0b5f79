"""The helper: a process of the engine's own that computes, so that the application's interpreter is left to requests.

It is a plain Python process that imports ragspan and nothing of the application's. It lives as long as its socket: when
the application ends, however it ends, the helper reads the end of the stream and ends as well.

- `process` starts it, `link` carries messages, `wire` says what a record looks like on the way, `serving` is its main.
- `connection` is one helper: it correlates answers with questions. `client` keeps one at hand: it starts a new helper when
  one dies, says when there can be none, and by `turns` how much may be asked at the same time.
- `computing` asks judges there; `forwarding` sends whole records, to be scored and exported there.
"""
