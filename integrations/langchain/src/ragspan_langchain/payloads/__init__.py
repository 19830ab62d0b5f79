"""Reads what callbacks hand over, on the request path: references and small copies only, nothing of the user's consumed.

Payloads are the very objects that the program goes on using. So whatever must stay as it is now is copied here (never
text, only references to it), iterators are left alone, and no method of a payload is called that could run user code.
"""
