"""Round trips: a question to the server's reflector over every path at the same instants, all the time."""
