"""What an application redacts with."""


def mask(text):
    return text.replace("Beta", "[bank]")


def fail(text):
    raise ValueError(text)
