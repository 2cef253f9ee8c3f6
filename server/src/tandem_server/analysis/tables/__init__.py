"""The result tables of every experiment: runs grouped by campaign, step and arm, a view an experiment."""
