"""Playing by hand: what keys mean (`keys`), frames taken back (`rewind`), the right speed (`pacing`), the
game in progress (`session`), and the window (`window`, the only module that needs pygame).
"""
