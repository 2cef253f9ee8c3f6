"""Parameters of the fused detector. Made by tests/bench/fit_mobility.py --write; not to be changed by hand.

Fitted to 37 logs of 8 days, 23.4 hours of one operator and one kind of telephone, on 2026-11-26.
"""

WINDOWS_S = (10.0, 20.0, 40.0, 80.0, 160.0)
WEIGHTS = (0.9573, 1.0397, 1.3271, 0.8057, 2.366, 1.3711)
BIAS = -4.9202
FULL_ODDS = 1.0
START_S = 3.0
MOST_S = 8.0
