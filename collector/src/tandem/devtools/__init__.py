"""A browser without a display, driven by the DevTools protocol over two pipes. Standard library only; the server records pages with it."""
