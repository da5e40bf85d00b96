"""Rollcart's lanes in the forms that training libraries want, one module a library (docs/adapters.md).

None of them is imported before it is asked for. What a module does is a plain class that needs no library
but Gymnasium; the library's own base class comes on top.
"""
