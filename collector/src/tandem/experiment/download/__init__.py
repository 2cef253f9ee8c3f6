"""Download by Multipath TCP or TCP, with statistics of every subflow ten times a second."""
