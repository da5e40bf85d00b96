"""The lists of button combinations that tutorials name, for `JoypadSpace`. Each begins the next one."""

RIGHT_ONLY = [["NOOP"], ["right"], ["right", "A"], ["right", "B"], ["right", "A", "B"]]

SIMPLE_MOVEMENT = [*RIGHT_ONLY, ["A"], ["left"]]

COMPLEX_MOVEMENT = [
    *SIMPLE_MOVEMENT,
    ["left", "A"],
    ["left", "B"],
    ["left", "A", "B"],
    ["down"],
    ["up"],
]
