"""Radio, goodput, handovers and ways by place and mobility, and pairs of runs held against each other. Pure."""
