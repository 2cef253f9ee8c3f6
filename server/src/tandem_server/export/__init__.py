"""A campaign out of the server's own stores into a campaign folder (docs/reference/campaign-folder.md)."""
