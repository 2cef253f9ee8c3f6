"""One module a board, with a function ``board()``: it puts panels of ``panels/`` together, and nothing else."""
