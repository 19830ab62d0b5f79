"""What tests start on this machine in place of other people's services.

| module | is |
| --- | --- |
| `http` | an HTTP server that answers by a function; all others but `raw` and `broker` are one |
| `raw` | a server that answers byte by byte, as hostile servers and broken proxies do |
| `chat` | an OpenAI-compatible endpoint that follows a script |
| `judge` | one that knows which worker asked about which record |
| `otlp` | an endpoint of OTLP, and the tracing backend of a fleet |
| `scores` | what the servers of tools that take scores have in common |
| `broker`, `cluster` | a real `nats-server`, and three of them |

Each has `start()`, `stop()` and `close()`: HTTP servers run as soon as they are made, unless `listening=False`; a broker is
started. What is stopped can be started again, at the same address. `close()` lets go of all that is held, and is the end; a
`with` block closes as well.
"""
