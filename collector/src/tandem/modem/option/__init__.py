"""Option's 3G sticks and cards: iCON, GlobeTrotter, GTM."""
