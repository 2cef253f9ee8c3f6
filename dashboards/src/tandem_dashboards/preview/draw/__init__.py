"""How each kind of panel is drawn: a function that makes HTML or SVG of frames."""
