"""One measurement from request to answer; screen, accept, accept-stack, calibrate are values of it, never
code paths.

request -> frozen plan (a dry run stops here) -> build -> same outputs -> checks -> blocks, each on disk at
once -> evidence -> verdict -> one attempt_finished event -> files, text, JSON, exit code.

request.py   what was asked for
lab.py       the callables that touch the world, so that tests can put others in
run.py       the order of the steps, and what is recorded whatever happens
answer.py    a verdict as text, five closing lines and the JSON object
"""
