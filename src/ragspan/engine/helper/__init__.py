"""A process of the engine's own that computes, so that the application's interpreter is free for requests."""
