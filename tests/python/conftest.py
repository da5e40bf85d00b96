"""Ctrl-C reaches the programs that tests start, also where the tests themselves run in the background.

A shell starts such jobs with SIGINT ignored, and what is ignored is inherited.
"""

import signal

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
