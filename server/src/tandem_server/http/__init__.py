"""The HTTP edge before gateway, control channel and run viewer: limits on connections, requests, bytes and disk; TLS; authentication."""
